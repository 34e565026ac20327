// Reads the page again when a hint says that its data has changed. Without a stream it reads every two seconds. Hidden tabs stop.
import { load } from "./morph.js";
import { startHints } from "./hints.js";

const POLL_MS = 2000;
const LONGEST_POLL_MS = 30000;
// With a stream: a list with a filter can change without a hint.
const SELDOM_MS = 10000;
// A busy store has hints all the time.
const LEAST_MS = 1000;

/** @param {() => void} refresh */
export function startLive(refresh) {
  const badge = document.getElementById("live");
  if (!badge) return;
  let timer = 0;
  let due = Infinity;
  let last = 0;
  let failures = 0;
  let busy = false;
  let missed = false;
  const show = (text, off) => {
    badge.hidden = false;
    badge.classList.toggle("off", off);
    if (badge.textContent !== text) badge.textContent = text;
  };
  /** Reads at a time, or earlier if an earlier time is set. */
  const plan = (at) => {
    if (at >= due) return;
    due = at;
    clearTimeout(timer);
    timer = setTimeout(read, Math.max(0, at - Date.now()));
  };
  const soon = () => {
    if (busy) missed = true;
    else plan(last + LEAST_MS);
  };
  const pause = () => {
    if (failures) return Math.min(POLL_MS * 2 ** failures, LONGEST_POLL_MS);
    return hints.isUp() ? SELDOM_MS : POLL_MS;
  };
  const read = async () => {
    if (busy) {
      missed = true;
      return;
    }
    clearTimeout(timer);
    due = Infinity;
    if (document.hidden) return;
    if (!document.body.hasAttribute("data-live")) {
      badge.hidden = true;
      return;
    }
    if (document.querySelector("dialog[open]")) return plan(Date.now() + POLL_MS);
    busy = true;
    last = Date.now();
    try {
      const answered = await load(location.href);
      failures = answered ? 0 : failures + 1;
      refresh();
      hints.update();
      show(answered ? "live" : "the page is gone", !answered);
    } catch {
      failures += 1;
      show("no connection", true);
    }
    busy = false;
    badge.hidden = !document.body.hasAttribute("data-live");
    plan(Date.now() + pause());
    if (missed) soon();
    missed = false;
  };
  const isMine = (name, instance) => {
    const { live, instance: own } = document.body.dataset;
    return name === "resync" || (name === live && (name !== "instance" || instance === own));
  };
  const hints = startHints(
    (name, instance) => isMine(name, instance) && soon(),
    () => plan(Date.now() + pause()),
  );
  if (document.body.hasAttribute("data-live")) show("live", false);
  document.addEventListener("visibilitychange", () => !document.hidden && read());
  document.addEventListener("outlast:changed", read);
  plan(Date.now() + POLL_MS);
}
