// Fills the column "Why" of the list, and the counts above it. Both cost more than the list itself, so they come later.

const FRESH_MS = 10000;
const SOON_MS = 1000;
const AT_A_TIME = 4;
const MOST = 30;
let last = 0;
let lastAddress = "";
let countedAt = 0;

export async function showCounts() {
  const places = document.querySelectorAll("[data-count]");
  if (!places.length || Date.now() - countedAt < FRESH_MS / 2) return;
  countedAt = Date.now();
  try {
    const answer = await fetch(`${document.body.dataset.base}/api/v1/instances/count`);
    if (!answer.ok) return;
    const counts = await answer.json();
    const about = counts.exact ? "" : "≈";
    for (const place of document.querySelectorAll("[data-count]")) {
      const count = counts[place.dataset.count];
      place.textContent = count === null ? "…" : about + count.toLocaleString();
    }
    // The store counts: its numbers come soon.
    if (!counts.exact) {
      countedAt = 0;
      setTimeout(showCounts, SOON_MS);
    }
  } catch {
    // The badge says that the server does not answer.
  }
}

export async function showWhys() {
  const cells = [...document.querySelectorAll("td[data-why]")].slice(0, MOST);
  const isOld = Date.now() - last > FRESH_MS || lastAddress !== location.href;
  const due = cells.filter((cell) => isOld || !cell.textContent);
  if (!due.length) return;
  [last, lastAddress] = [Date.now(), location.href];
  const base = document.body.dataset.base;
  const next = async () => {
    for (let cell = due.shift(); cell; cell = due.shift()) {
      const address = cell.dataset.why.slice(base.length);
      try {
        const answer = await fetch(`${base}/api/v1${address}/why`);
        const text = document.createElement("span");
        text.textContent = text.title = answer.ok ? (await answer.json()).short : "";
        cell.replaceChildren(text);
      } catch {
        return;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, next));
}
