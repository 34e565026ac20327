// The contrast of every visible text with its background, the weakest first.
const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const known = new Map();

/** The colour as red, green, blue from 0 to 255 and opacity from 0 to 1; the browser reads every form of a colour. */
function parsed(color) {
  if (!known.has(color)) {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data;
    known.set(color, [red, green, blue, alpha / 255]);
  }
  return known.get(color);
}

const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3]));

/** The colour behind an element: those of its ancestors, one over the other. */
function background(element) {
  const layers = [];
  for (let at = element; at; at = at.parentElement) layers.push(parsed(getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((below, layer) => over(layer, below), parsed("Canvas").slice(0, 3));
}

function luminance(color) {
  const [red, green, blue] = color.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.nodeValue.trim();
  const element = walker.currentNode.parentElement;
  // Disabled controls are exempt.
  if (!text || ["SCRIPT", "NOSCRIPT"].includes(element.tagName) || element.closest(":disabled")) continue;
  if (!element.checkVisibility({ visibilityProperty: true }) || element.closest(".hidden")) continue;
  const behind = background(element);
  const color = over(parsed(getComputedStyle(element).color), behind);
  found.push({ text: text.slice(0, 40), of: `${element.tagName} ${element.className}`, contrast: contrast(color, behind) });
}
for (const field of document.querySelectorAll("input[placeholder]")) {
  if (field.value || !field.checkVisibility()) continue;
  const behind = background(field);
  const color = over(parsed(getComputedStyle(field, "::placeholder").color), behind);
  found.push({ text: field.placeholder, of: "placeholder", contrast: contrast(color, behind) });
}
found.sort((a, b) => a.contrast - b.contrast);
return { texts: found.length, worst: found.slice(0, 12) };
