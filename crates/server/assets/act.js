// Dialogs that change an instance, copies to the clipboard, and the slider of the state.
import { load } from "./morph.js";
import { showTimes } from "./time.js";

export function startActs() {
  document.addEventListener("click", async (event) => {
    const target = event.target instanceof Element ? event.target.closest("[data-open],[data-close],[data-copy],[data-help]") : null;
    if (!target) return;
    if (target.hasAttribute("data-open")) open(target.dataset.open);
    if (target.hasAttribute("data-help")) open("help");
    if (target.hasAttribute("data-close")) target.closest("dialog")?.close();
    if (target.hasAttribute("data-copy")) {
      try {
        await navigator.clipboard.writeText(target.dataset.copy);
        target.textContent = "copied";
        setTimeout(() => (target.textContent = "copy"), 1200);
      } catch {
        target.textContent = "not copied";
      }
    }
  });
  document.addEventListener("submit", (event) => {
    if (event.target instanceof HTMLFormElement && event.target.dataset.act) {
      event.preventDefault();
      send(event.target);
    }
  });
  document.addEventListener("input", (event) => {
    if (event.target instanceof HTMLInputElement && event.target.dataset.scrub) scrub(event.target);
  });
}

/** @param {string} id */
export function open(id) {
  const dialog = document.getElementById(id);
  if (!(dialog instanceof HTMLDialogElement)) return;
  const error = dialog.querySelector(".error");
  if (error) error.textContent = "";
  dialog.showModal();
}

/** @param {HTMLFormElement} form */
async function send(form) {
  const error = form.querySelector(".error");
  const button = form.querySelector("button.primary");
  button.disabled = true;
  try {
    const answer = await request(form);
    if (answer.ok) {
      form.reset();
      form.closest("dialog")?.close();
      document.dispatchEvent(new Event("outlast:changed"));
    } else {
      const problem = await answer.json();
      error.textContent = problem.detail || problem.title;
    }
  } catch {
    error.textContent = "The server does not answer.";
  }
  button.disabled = false;
}

/** Posts the fields as JSON. A deletion has no body: its fields are parameters. */
function request(form) {
  const fields = new FormData(form);
  if (form.dataset.method === "DELETE") {
    return fetch(`${form.dataset.act}?${new URLSearchParams(fields)}`, { method: "DELETE" });
  }
  const body = JSON.stringify(Object.fromEntries(fields));
  return fetch(form.dataset.act, { method: "POST", headers: { "content-type": "application/json" }, body });
}

let wanted = "";
let busy = false;

/** Shows the state of the slider's event; while one is read, only the newest wish is kept. */
async function scrub(slider) {
  wanted = slider.dataset.scrub + slider.value;
  if (busy) return;
  busy = true;
  while (wanted) {
    const address = wanted;
    wanted = "";
    history.replaceState(null, "", address);
    try {
      await load(address);
      showTimes();
    } catch {
      break;
    }
  }
  busy = false;
}
