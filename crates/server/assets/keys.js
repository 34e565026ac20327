// Keys. They do nothing while a field has the focus.
import { open } from "./act.js";

const SCREENS = {
  i: "/instances",
  q: "/queues",
  n: "/queues#nodes",
  d: "/dead-letters",
  a: "/audit",
  s: "/system",
};

export function startKeys() {
  let goes = 0;
  document.addEventListener("keydown", (event) => {
    const field = event.target instanceof Element && event.target.closest("input,textarea,select,dialog");
    if (event.ctrlKey || event.metaKey || event.altKey || field) return;
    const { key } = event;
    if (goes && Date.now() - goes < 1500 && SCREENS[key]) {
      location.href = document.body.dataset.base + SCREENS[key];
    } else if (key === "g") {
      goes = Date.now();
      return;
    } else if (key === "/") {
      document.getElementById("filter")?.focus();
    } else if (key === "j" || key === "k") {
      choose(key === "j" ? 1 : -1);
    } else if (key === "Enter" && event.target === document.body) {
      document.querySelector("tr.chosen a")?.click();
    } else if (key === "x") {
      document.querySelector("tr.chosen .pick input")?.click();
    } else if (key === "[" || key === "]") {
      document.querySelector(`[data-step="${key === "[" ? "before" : "after"}"]`)?.click();
    } else if (key === "?") {
      open("help");
    } else {
      goes = 0;
      return;
    }
    goes = 0;
    event.preventDefault();
  });
}

/** @param {number} step */
function choose(step) {
  const rows = [...document.querySelectorAll("tr[data-row]")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.classList.contains("chosen"));
  const next = rows[Math.min(Math.max(at + step, 0), rows.length - 1)];
  if (at >= 0) rows[at].classList.remove("chosen");
  next.classList.add("chosen");
  next.scrollIntoView({ block: "nearest" });
}
