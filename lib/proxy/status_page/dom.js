/** Building and changing the document. Text goes in as text, always: nothing here reads markup. */

const SVG = "http://www.w3.org/2000/svg";

export function byId(id) {
  return document.getElementById(id);
}

/** `el("td", { class: "num" }, "4", otherNode)` */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

/** A table cell that stays one for screen readers when narrow screens show it as a block. */
export function cell(classes, title, ...children) {
  return el("td", { role: "cell", class: classes, "data-title": title }, ...children);
}

/** Writes only what is new: an unchanged text costs no layout. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

export function setHidden(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

/**
 * Makes the children of `parent` these nodes, in this order, moving as few as possible.
 */
export function arrange(parent, nodes) {
  let at = parent.firstChild;
  for (const node of nodes) {
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
  while (at !== null) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** What comes by itself is drawn at most this often: nobody reads faster, and each redraw costs a layout. */
const SPACING_MS = 250;
const jobs = new Set();
let drawnAtMs = Number.NEGATIVE_INFINITY;
let timer = null;

/** Runs the job with the next frame, once, however often it was asked for. */
export function nextFrame(job) {
  const isFirst = jobs.size === 0;
  jobs.add(job);
  if (!isFirst) return;
  requestAnimationFrame(() => {
    drawnAtMs = performance.now();
    const due = [...jobs];
    jobs.clear();
    for (const run of due) run();
  });
}

const later = new Set();

/** Runs the job with the next redraw of what came by itself; many changes are one redraw. */
export function soon(job) {
  later.add(job);
  if (timer !== null) return;
  timer = setTimeout(() => {
    timer = null;
    for (const run of later) nextFrame(run);
    later.clear();
  }, Math.max(0, drawnAtMs + SPACING_MS - performance.now()));
}
