// Starts the modules. Every page works without them.
import { showTimes } from "./time.js";
import { startActs } from "./act.js";
import { showPicked, startBulk } from "./bulk.js";
import { showEvents } from "./events.js";
import { startKeys } from "./keys.js";
import { startLive } from "./live.js";
import { startLogin } from "./login.js";
import { showCounts, showWhys } from "./why.js";

/** Shows what the server leaves to the browser. Called for a new page, and after each update. */
export function refresh() {
  showTimes();
  showEvents();
  showCounts();
  showWhys();
  showPicked();
}

startActs();
startBulk();
startKeys();
startLogin();
refresh();
startLive(refresh);
setInterval(showTimes, 1000);

document.querySelector("[data-theme-toggle]")?.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `outlast_theme=${root.dataset.theme}; Path=${document.body.dataset.base || "/"}; Max-Age=31536000; SameSite=Strict`;
});
