// Shows the state of the demo twice a second, and sends the clicks of the visitor. All texts are set as text, never as HTML.

const PAUSE_MS = 500;
const $ = (id) => document.getElementById(id);

/** An element with a class, a text and children. */
function make(name, className, ...children) {
  const element = document.createElement(name);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

/** A button that is the same element in every update, so that the focus stays. */
const buttons = new Map();
function button(key, label, className, path, body) {
  let found = buttons.get(key);
  if (!found) {
    found = make("button", className, label);
    found.type = "button";
    found.addEventListener("click", () => post(path, body));
    buttons.set(key, found);
  }
  return found;
}

async function post(path, body) {
  $("error").textContent = "";
  try {
    const answer = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    if (!answer.ok) $("error").textContent = await answer.text();
  } catch {
    $("error").textContent = "The demo does not answer.";
  }
  await read();
}

function set(id, text) {
  const element = $(id);
  if (element.textContent !== String(text)) element.textContent = text;
}

/** Puts the children into the element, unless the same texts are there already. */
const shown = new Map();
function fill(id, state, children) {
  const now = JSON.stringify(state);
  if (shown.get(id) === now) return;
  shown.set(id, now);
  const focused = document.activeElement;
  $(id).replaceChildren(...children());
  if (focused instanceof HTMLElement && focused.isConnected) focused.focus();
}

const clock = (ms) => new Date(ms).toLocaleTimeString();
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
const count = (number, thing, things = `${thing}s`) => `${number} ${number === 1 ? thing : things}`;

function order(id) {
  const link = make("a", "", id);
  link.href = `instances/${encodeURIComponent(id)}`;
  return link;
}

function row(each) {
  return make("tr", "", make("td", "id", order(each.order)), make("td", "", each.customer), make("td", "", each.total), make("td", "", make("span", `status ${each.tone}`, each.state)));
}

function worker(each) {
  const alive = each.process !== null;
  const name = make("div", "name", make("b", "", `Worker ${each.worker}`), make("small", "", alive ? `process ${each.process}, runs ${count(each.activities, "activity", "activities")}` : "dead, replaced in 2 s"));
  const kill = button(`kill-${each.worker}`, `kill -9 worker ${each.worker}`, "danger", "demo/kill", { worker: each.worker });
  kill.disabled = !alive;
  return make("li", alive ? "" : "dead", make("span", "dot"), name, kill);
}

function kill(each) {
  const held = each.held.map((held) => {
    const end = held.taken ? ` ✓ worker ${held.taken.worker} runs it again after ${seconds(held.taken.after_ms)}` : " waits for the other worker …";
    return make("li", "", `${held.activity} of `, order(held.instance), end);
  });
  if (each.held_left_out) held.push(make("li", "", `and ${each.held_left_out} more`));
  const text = each.held.length ? `It was running ${count(each.held.length + each.held_left_out, "activity", "activities")}:` : "It was running no activity.";
  const done = each.held.every((held) => held.taken);
  return make("li", done ? "kill done" : "kill", make("p", "", make("b", "", `Worker ${each.worker}, process ${each.process}, died at ${clock(each.at_ms)}.`), ` ${text}`), make("ul", "", ...held));
}

function waiting(each) {
  const what = make("span", "what", order(each.order), ` ${each.customer} orders ${each.items} for ${each.total}. The shop approves it itself at ${clock(each.until_ms)}.`);
  const yes = button(`yes-${each.order}`, "Approve", "primary", "demo/answer", { order: each.order, approve: true });
  const no = button(`no-${each.order}`, "Refuse", "", "demo/answer", { order: each.order, approve: false });
  return make("li", "", what, make("span", "acts", yes, no));
}

function show(state) {
  set("placed", state.placed);
  set("placed-of", `of ${state.orders} placed`);
  set("delivered", state.delivered);
  set("undone", state.undone);
  set("prevented", state.prevented);
  set("twice", state.charged_twice);
  $("ask").hidden = state.waiting.length === 0;
  set("ask-title", state.waiting.length === 1 ? "An approval waits for you" : `${state.waiting.length} approvals wait for you`);
  fill("waiting", state.waiting, () => state.waiting.map(waiting));
  fill("workers", state.phase === "running" ? state.workers : [], () => (state.phase === "running" ? state.workers.map(worker) : [make("li", "dead", "The workers have stopped: the batch is over.")]));
  $("no-kills").hidden = state.kills.length > 0;
  fill("kills", state.kills, () => state.kills.map(kill));
  fill("open", state.open, () => (state.open.length ? state.open.map(row) : [make("tr", "", make("td", "quiet", "No order is open."))]));
  set("more", state.open_left_out ? `and ${state.open_left_out} more` : "");
  fill("ended", state.ended, () => (state.ended.length ? state.ended.map(row) : [make("tr", "", make("td", "quiet", "No order has ended yet."))]));
  $("proof").hidden = !state.proof;
  $("proof").className = state.phase === "disproven" ? "banner bad" : "banner ok";
  set("proof-text", state.proof ?? "");
  $("again").hidden = !(state.stays && state.phase === "proven");
}

let timer = 0;
async function read() {
  clearTimeout(timer);
  const live = $("live");
  try {
    const answer = await fetch("demo/state");
    if (!answer.ok) throw new Error(answer.statusText);
    show(await answer.json());
    live.classList.remove("off");
    set("live", "live");
  } catch {
    live.classList.add("off");
    set("live", "the demo has ended");
  }
  timer = setTimeout(read, document.hidden ? 4 * PAUSE_MS : PAUSE_MS);
}

$("again").addEventListener("click", () => post("demo/again", {}));
document.addEventListener("visibilitychange", () => document.hidden || read());
read();
