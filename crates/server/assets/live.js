// Reads the page again while it is visible. Hidden tabs stop.
import { load } from "./morph.js";

const PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 30000;

/** @param {() => void} refresh */
export function startLive(refresh) {
  const badge = document.getElementById("live");
  if (!badge) return;
  let timer = 0;
  let failures = 0;
  const show = (text, off) => {
    badge.hidden = false;
    badge.classList.toggle("off", off);
    if (badge.textContent !== text) badge.textContent = text;
  };
  const again = () => {
    clearTimeout(timer);
    timer = setTimeout(read, Math.min(PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS));
  };
  const read = async () => {
    const isLive = document.body.hasAttribute("data-live");
    if (!isLive) badge.hidden = true;
    if (document.hidden || !isLive || document.querySelector("dialog[open]")) return again();
    try {
      const answered = await load(location.href);
      failures = answered ? 0 : failures + 1;
      refresh();
      show(answered ? "live" : "the page is gone", !answered);
    } catch {
      failures += 1;
      show("no connection", true);
    }
    again();
  };
  if (document.body.hasAttribute("data-live")) show("live", false);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) read();
  });
  document.addEventListener("outlast:changed", read);
  again();
}
