// Elements, made and changed without markup in strings.

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

export function html(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Sets a text only when it differs: nothing is announced, selected or painted anew for nothing. */
export function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Replaces the children only when their texts differ. `make` gives a node of a text. */
export function list(node, texts, make) {
  const joined = JSON.stringify(texts);
  if (node.dataset.texts === joined) return;
  node.dataset.texts = joined;
  node.replaceChildren(...texts.map(make));
}
