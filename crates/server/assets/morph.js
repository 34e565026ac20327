// Changes a tree of nodes into another one, so that focus, selection and scroll positions stay.

/** @param {Element} from @param {Element} to */
export function morph(from, to) {
  if (from.hasAttribute("data-keep") && from.getAttribute("data-why") === to.getAttribute("data-why")) return;
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && !isOfBrowser(from, name)) from.removeAttribute(name);
  for (const { name, value } of to.attributes) if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  if (from === document.activeElement && "value" in from) return;
  // A time keeps the text of the browser's zone.
  if (from.localName === "time") return;
  children(from, to);
}

/** Whether a script of this page, not the server, has set the attribute. */
function isOfBrowser(node, name) {
  return name === "open" || (name === "title" && node.localName === "time") || (name === "class" && node.className === "chosen");
}

/** @param {Element} from @param {Element} to */
function children(from, to) {
  const named = new Map();
  for (const child of from.children) if (child.id) named.set(child.id, child);
  let place = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const known = wanted.nodeType === Node.ELEMENT_NODE && wanted.id ? named.get(wanted.id) : null;
    if (known && known !== place) {
      from.insertBefore(known, place);
      place = known;
    }
    const fits = place && place.nodeType === wanted.nodeType && place.nodeName === wanted.nodeName && (place.id ?? "") === (wanted.id ?? "");
    if (!fits) {
      from.insertBefore(document.importNode(wanted, true), place);
      continue;
    }
    const next = place.nextSibling;
    if (wanted.nodeType === Node.ELEMENT_NODE) morph(place, wanted);
    else if (place.nodeValue !== wanted.nodeValue) place.nodeValue = wanted.nodeValue;
    place = next;
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

/** Reads a page and puts its content into this one. Returns whether the server answered with a page. */
export async function load(address) {
  const answer = await fetch(address, { headers: { accept: "text/html" } });
  if (!(answer.headers.get("content-type") ?? "").startsWith("text/html")) return false;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [here, there] = [document.getElementById("main"), page.getElementById("main")];
  if (!here || !there || !answer.ok) return false;
  morph(here, there);
  for (const name of ["data-live", "data-instance"]) {
    if (page.body.hasAttribute(name)) document.body.setAttribute(name, page.body.getAttribute(name));
    else document.body.removeAttribute(name);
  }
  return true;
}
