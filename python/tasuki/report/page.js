// The report's tabs, and its timeline: drawn on a canvas, moved by dragging, zoomed with two fingers, buttons, keys, or
// the wheel: with Ctrl, or once the timeline has been clicked, so that the wheel scrolls the page otherwise.
"use strict";

const tabs = [...document.querySelectorAll("[role=tab]")];
const section = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
function show(name) {
  const chosen = tabs.find((tab) => tab.dataset.name === name) ?? tabs[0];
  for (const tab of tabs) {
    tab.setAttribute("aria-selected", String(tab === chosen));
    section(tab).hidden = tab !== chosen;
  }
  chosen.scrollIntoView({ block: "nearest", inline: "nearest" });
  scrollTo(0, 0);
  if (chosen.dataset.name === "timeline") draw();
}
history.scrollRestoration = "manual";
for (const tab of tabs) tab.addEventListener("click", () => { location.hash = tab.dataset.name; });
addEventListener("hashchange", () => show(location.hash.slice(1)));

// rows: {label, rank, spans: [[begin µs, end µs, colour, text], ...]}, sorted by time
// view: the part to show at first, [begin µs, end µs], or null
const { rows, view } = JSON.parse(document.getElementById("timeline-data").textContent);
const canvas = document.querySelector("canvas");
const TOP = 24, NARROW = 640, LEAST = 0.05;  // pixels; pixels of width; µs that the canvas shows at least
let least = Infinity, most = -Infinity;
for (const row of rows) for (const [begin, end] of row.spans) [least, most] = [Math.min(least, begin), Math.max(most, end)];
if (most - least < LEAST) most = least + LEAST;
let from = Math.max(least, most - (most - least) / 10), to = most;
if (view && view[1] > view[0]) [from, to] = [Math.max(least, view[0]), Math.min(most, Math.max(view[1], view[0] + LEAST))];

// On narrow screens a row's label stands above its bars, not beside them.
function sizes() {
  const width = canvas.clientWidth, narrow = width < NARROW;
  return { width, narrow, left: narrow ? 0 : 190, row: narrow ? 34 : 20, above: narrow ? 14 : 0 };
}

// A time in the unit that fits the times shown, with the decimals that tell two of them `grain` µs apart.
function timeText(time, grain, scale = Math.max(Math.abs(time), grain)) {
  const [name, unit] = scale >= 1e6 ? ["s", 1e6] : scale >= 1e3 ? ["ms", 1e3] : scale >= 1 ? ["µs", 1] : ["ns", 1e-3];
  return `${(time / unit).toFixed(Math.max(0, Math.ceil(-Math.log10(grain / unit) - 1e-9)))} ${name}`;
}
const lengthText = (length) => length ? timeText(length, 10 ** (Math.floor(Math.log10(length)) - 2)) : "0";

// 1, 2 or 5 times a power of ten, at least this much.
function roundStep(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= step * (1 - 1e-9));
}

// White or black, whichever is easier to read on a colour such as #2c7fb8.
function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 150 ? "#111" : "#fff";
}

function draw() {
  if (!canvas || !rows.length || !canvas.clientWidth) return;
  const { width, narrow, left, row: height, above } = sizes();
  const position = (time) => left + ((time - from) / (to - from)) * (width - left);
  const colours = getComputedStyle(document.documentElement);
  const [ink, faint, card, grid, line] = ["ink", "faint", "card", "grid", "line"].map((n) => colours.getPropertyValue(`--${n}`));
  canvas.style.height = TOP + height * rows.length + "px";
  canvas.width = width * devicePixelRatio;
  canvas.height = (TOP + height * rows.length) * devicePixelRatio;
  const pen = canvas.getContext("2d");
  pen.scale(devicePixelRatio, devicePixelRatio);
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const step = roundStep(((to - from) * 95) / (width - left));
  for (let n = Math.ceil(from / step); n * step < to; ++n) {
    const x = position(n * step);
    pen.fillStyle = grid;
    pen.fillRect(x, TOP, 1, height * rows.length);
    pen.fillStyle = faint;
    pen.fillText(timeText(n * step, step, Math.max(Math.abs(to), step)), x + 2, TOP / 2);
  }
  rows.forEach((row, i) => {
    const y = TOP + height * i;
    if (i && rows[i - 1].rank !== row.rank) {
      pen.fillStyle = faint;
      pen.fillRect(0, y, width, 1);
    } else if (i && narrow) {
      pen.fillStyle = line;
      pen.fillRect(0, y, width, 1);
    }
    const middle = y + above + (height - above) / 2 + 1;
    for (const [begin, end, colour, text] of row.spans) {
      if (end < from || begin > to) continue;
      const x = Math.max(left, position(begin)), right = Math.min(width, position(end));
      pen.fillStyle = colour;
      pen.fillRect(x, y + above + 3, Math.max(1, right - x), height - above - 5);
      // No part of a text is drawn. Most bars are too short for any: those are not measured, which takes long.
      if (right - x > 24 && pen.measureText(text).width + 8 <= right - x) {
        pen.fillStyle = colour.length > 7 ? ink : inkOn(colour);
        pen.fillText(text, x + 4, middle);
      }
    }
    if (!narrow) {
      pen.fillStyle = card;
      pen.fillRect(0, y + 1, left - 4, height - 1);
    }
    pen.fillStyle = narrow ? faint : ink;
    if (narrow) pen.fillText(row.label, 4, y + 9, width - 8);
    else pen.fillText(row.label, 4, middle, left - 10);
  });
}

// Shows `span` µs with the time `fixed` at the place x, within what was recorded.
function look(span, fixed, x) {
  const { width, left } = sizes();
  span = Math.min(most - least, Math.max(LEAST, span));
  from = fixed - (span * (x - left)) / (width - left);
  from = Math.min(most - span, Math.max(least, from));
  to = from + span;
  draw();
}

const note = document.getElementById("note");
function timeAt(x) {
  const { width, left } = sizes();
  return from + ((x - left) / (width - left)) * (to - from);
}
function zoom(factor, x = sizes().left + (sizes().width - sizes().left) / 2) {
  look((to - from) * factor, timeAt(x), x);
}

function tell(event) {
  const { width, left, row: height } = sizes();
  const row = rows[Math.floor((event.offsetY - TOP) / height)], time = timeAt(event.offsetX);
  const grain = (2 * (to - from)) / (width - left);
  const span = event.offsetX < left ? null : row?.spans.find((s) => s[0] - grain <= time && time <= s[1] + grain);
  note.hidden = !span;
  if (!span) return;
  note.textContent = `${row.label}: ${span[3]}: ${lengthText(span[1] - span[0])} from ${timeText(span[0], 0.01)}`;
  note.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - note.offsetWidth - 8)) + "px";
  note.style.top = event.clientY + 14 + "px";
}

if (canvas && rows.length) {
  canvas.addEventListener("wheel", (event) => {
    if (!(event.ctrlKey || event.metaKey || document.activeElement === canvas)) return;  // scrolls the page
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.max(event.offsetX, sizes().left));
  }, { passive: false });

  const held = new Map();  // fingers and buttons that are down: pointer -> x
  const xOf = (event) => event.clientX - canvas.getBoundingClientRect().left;
  canvas.addEventListener("pointerdown", (event) => {
    held.set(event.pointerId, xOf(event));
    canvas.setPointerCapture(event.pointerId);
    tell(event);
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => held.delete(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    if (!held.has(event.pointerId)) {
      tell(event);
      return;
    }
    const before = [...held.values()];
    held.set(event.pointerId, xOf(event));
    const now = [...held.values()];
    if (now.length === 1) look(to - from, timeAt(before[0]), now[0]);
    if (now.length === 2) {
      const apart = (xs) => Math.max(8, Math.abs(xs[0] - xs[1])), middle = (xs) => (xs[0] + xs[1]) / 2;
      look(((to - from) * apart(before)) / apart(now), timeAt(middle(before)), middle(now));
    }
    note.hidden = true;
  });
  canvas.addEventListener("pointerleave", () => { note.hidden = true; });
  canvas.addEventListener("keydown", (event) => {
    const part = (to - from) / 4, keys = {
      "+": () => zoom(0.5), "-": () => zoom(2), Escape: () => canvas.blur(),
      ArrowLeft: () => look(to - from, from - part, sizes().left), ArrowRight: () => look(to - from, from + part, sizes().left),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  const buttons = { in: () => zoom(0.5), out: () => zoom(2), all: () => zoom(Infinity) };
  for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", buttons[button.dataset.zoom]);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
addEventListener("resize", draw);
show(location.hash.slice(1));
