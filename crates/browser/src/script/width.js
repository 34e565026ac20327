// The element that makes the page wider than its window, or null.
const { scrollWidth, clientWidth } = document.documentElement;
if (scrollWidth <= clientWidth) return null;
const wide = [...document.body.querySelectorAll("*")].filter((element) => element.getBoundingClientRect().right > clientWidth + 0.5);
const names = wide.slice(0, 5).map((element) => `${element.tagName}.${element.className} to ${element.getBoundingClientRect().right}`);
return `${scrollWidth} of ${clientWidth} pixels: ${names.join(", ")}`;
