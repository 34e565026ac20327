// Changes of many instances: the selected rows, or all that match. A dry run shows the count, the change names it, and the progress follows.

const POLL_MS = 300;
// The titles of the actions, and the state of the instances that they are for.
const VERBS = {
  pause: ["Pause", "running"],
  resume: ["Resume", "held"],
  cancel: ["Cancel", "running"],
  terminate: ["Terminate", "running"],
  delete: ["Delete", "ended"],
};
let asked = null;
let runs = "";
let looks = 0;

const part = (name) => document.getElementById(name);
const picked = () => [...document.querySelectorAll("input[name=pick]:checked")].map((box) => box.value);
const counted = (count, noun) => `${count.toLocaleString()} ${noun}${count === 1 ? "" : "s"}`;

/** Says which instances the buttons are for. */
export function showPicked() {
  const place = part("picked");
  if (!place) return;
  const count = picked().length;
  const text = count ? `With ${counted(count, "selected instance")}:` : "With all instances that match:";
  if (place.textContent !== text) place.textContent = text;
  const all = document.querySelector("[data-pick-all]");
  const boxes = document.querySelectorAll("input[name=pick]").length;
  all.checked = count > 0 && count === boxes;
  all.indeterminate = count > 0 && count < boxes;
}

export function startBulk() {
  const dialog = part("bulk");
  if (!(dialog instanceof HTMLDialogElement)) return;
  const form = dialog.querySelector("form");
  document.addEventListener("change", (event) => {
    const box = event.target;
    if (!(box instanceof HTMLInputElement) || !box.closest(".pick")) return;
    if ("pickAll" in box.dataset) for (const one of document.querySelectorAll("input[name=pick]")) one.checked = box.checked;
    showPicked();
  });
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-bulk],[data-bulk-stop]") : null;
    if (!button) return;
    if (button.dataset.bulk) look(dialog, form, button.dataset.bulk);
    else stop(form);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (asked) change(form);
    else look(dialog, form, form.dataset.verb);
  });
  dialog.addEventListener("close", () => {
    asked = null;
    runs = "";
    form.reset();
    document.dispatchEvent(new Event("outlast:changed"));
  });
}

/** A problem of the server, with its code. */
class Refused extends Error {
  constructor(text, code = "") {
    super(text.charAt(0).toUpperCase() + text.slice(1));
    this.code = code;
  }
}

/** Posts a body; throws a text for people. */
async function post(address, body) {
  const request = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(address, request).catch(() => {
    throw new Refused("The server does not answer.");
  });
  const value = await answer.json();
  if (!answer.ok) throw new Refused(value.detail || value.title, value.code);
  return value;
}

function show(form, { title, text, samples = [], button = "", stop = false, progress = null }) {
  if (title) part("bulk-title").textContent = title;
  part("bulk-text").textContent = text;
  part("bulk-samples").replaceChildren(
    ...samples.map((id) => {
      const line = document.createElement("li");
      line.textContent = line.title = id;
      return line;
    }),
  );
  const bar = part("bulk-progress");
  bar.hidden = !progress;
  if (progress) [bar.value, bar.max] = progress;
  part("bulk-reason").hidden = !button;
  const primary = form.querySelector("button.primary");
  primary.hidden = !button;
  primary.disabled = false;
  primary.textContent = button;
  form.querySelector("[data-bulk-stop]").hidden = !stop;
}

/** The dry run. */
async function look(dialog, form, verb) {
  const [title, kind] = VERBS[verb];
  const ids = picked();
  const mine = ++looks;
  const filter = ids.length ? { ids } : JSON.parse(form.dataset.filter);
  const error = form.querySelector(".error");
  error.textContent = "";
  const { reason } = form.elements;
  if (form.dataset.verb !== verb) form.reset();
  form.dataset.verb = verb;
  show(form, { title: `${title} instances`, text: "Counting…" });
  if (!dialog.open) dialog.showModal();
  try {
    const found = await post(form.dataset.operations, { action: verb, filter, dry_run: true });
    if (mine !== looks || !dialog.open) return;
    const which = ids.length ? `${found.count === 1 ? "is" : "are"} ${kind} among the ${counted(ids.length, "selected instance")}` : found.count === 1 ? "matches" : "match";
    const instances = counted(found.count, ids.length ? "instance" : `${kind} instance`);
    const more = found.count > found.samples.length ? [`and ${(found.count - found.samples.length).toLocaleString()} more`] : [];
    asked = { action: verb, filter, mark: found.mark, count: found.count };
    show(form, {
      text: found.count ? `${instances} ${which}. Instances that are created from now on are not touched.` : `No ${kind} instance ${ids.length ? "is selected" : "matches"}.`,
      samples: [...found.samples, ...more],
      button: found.count ? `${title} ${counted(found.count, "instance")}` : "",
    });
    if (found.count) reason.focus();
  } catch (refused) {
    show(form, { text: "Nothing was changed." });
    error.textContent = refused.message;
  }
}

async function change(form) {
  const error = form.querySelector(".error");
  const primary = form.querySelector("button.primary");
  if (!asked || primary.disabled) return;
  error.textContent = "";
  primary.disabled = true;
  try {
    const begun = await post(form.dataset.operations, { ...asked, reason: form.elements.reason.value });
    runs = begun.id;
    follow(form, begun);
  } catch (refused) {
    primary.disabled = false;
    error.textContent = refused.message;
    // The same count would be refused again.
    if (refused.code === "set_changed") {
      primary.textContent = "Count again";
      asked = null;
    }
  }
}

/** Shows the progress until the operation has ended or the dialog is closed. The operation runs on without the dialog. */
async function follow(form, begun) {
  for (let now = begun; runs === begun.id; ) {
    const done = now.changed + now.unchanged + now.refused;
    const parts = [`${now.changed.toLocaleString()} of ${counted(now.matching, "instance")} changed`];
    if (now.unchanged) parts.push(`${now.unchanged.toLocaleString()} had changed before`);
    if (now.refused) parts.push(`${now.refused.toLocaleString()} refused`);
    const is = now.state === "running";
    const word = { done: "Done", stopped: "Stopped", failed: "Failed" }[now.state];
    show(form, { text: `${is ? "" : `${word}: `}${parts.join(", ")}.`, progress: [done, Math.max(now.matching, 1)], stop: is });
    if (now.error) form.querySelector(".error").textContent = now.error;
    if (!is) return;
    await new Promise((resume) => setTimeout(resume, POLL_MS));
    try {
      const answer = await fetch(`${form.dataset.operations}/${now.id}`);
      if (answer.ok) now = await answer.json();
      else return show(form, { text: "The server has forgotten the operation: it was started again. The audit has its changes." });
    } catch {
      form.querySelector(".error").textContent = "The server does not answer.";
    }
  }
}

async function stop(form) {
  try {
    await post(`${form.dataset.operations}/${runs}/stop`, { reason: "stopped on the page" });
  } catch (refused) {
    form.querySelector(".error").textContent = refused.message;
  }
}
