// The report's tabs, and its timeline: drawn on a canvas, zoomed with the wheel, moved by dragging.
"use strict";

const tabs = [...document.querySelectorAll("[role=tab]")];
function show(name) {
  const chosen = tabs.find((tab) => tab.dataset.name === name) ?? tabs[0];
  for (const tab of tabs) {
    tab.setAttribute("aria-selected", String(tab === chosen));
    document.getElementById(tab.dataset.name).hidden = tab !== chosen;
  }
  if (chosen.dataset.name === "timeline") draw();
}
for (const tab of tabs) tab.addEventListener("click", () => { location.hash = tab.dataset.name; });
addEventListener("hashchange", () => show(location.hash.slice(1)));

// rows: {label, rank, spans: [[begin µs, end µs, colour, text], ...]}, sorted by time
const rows = JSON.parse(document.getElementById("timeline-data").textContent);
const canvas = document.querySelector("canvas");
const ROW = 20, LEFT = 190, TOP = 24;
const all = rows.flatMap((row) => row.spans);
const least = Math.min(...all.map((s) => s[0])), most = Math.max(...all.map((s) => s[1]));
let from = Math.max(least, most - (most - least) / 10), to = most;

const position = (time, width) => LEFT + ((time - from) / (to - from)) * (width - LEFT);

function draw() {
  if (!canvas || !all.length) return;
  const width = canvas.clientWidth, height = TOP + ROW * rows.length;
  canvas.style.height = height + "px";
  canvas.width = width * devicePixelRatio;
  canvas.height = height * devicePixelRatio;
  const pen = canvas.getContext("2d");
  pen.scale(devicePixelRatio, devicePixelRatio);
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const step = 10 ** Math.floor(Math.log10((to - from) / 4));
  for (let t = Math.ceil(from / step) * step; t < to; t += step) {
    const x = position(t, width);
    pen.fillStyle = "#eee";
    pen.fillRect(x, TOP, 1, height);
    pen.fillStyle = "#666";
    if ((to - from) / step < 14 || Math.round(t / step) % 5 === 0) pen.fillText(`${+t.toPrecision(9)} µs`, x + 2, TOP / 2);
  }
  rows.forEach((row, i) => {
    const y = TOP + ROW * i;
    if (i && rows[i - 1].rank !== row.rank) {
      pen.fillStyle = "#999";
      pen.fillRect(0, y, width, 1);
    }
    for (const [begin, end, colour, text] of row.spans) {
      if (end < from || begin > to) continue;
      const x = Math.max(LEFT, position(begin, width)), right = Math.min(width, position(end, width));
      pen.fillStyle = colour;
      pen.fillRect(x, y + 3, Math.max(1, right - x), ROW - 5);
      if (right - x > 40) {
        pen.save();
        pen.beginPath();
        pen.rect(x, y, right - x, ROW);
        pen.clip();
        pen.fillStyle = colour.length > 7 ? "#222" : "#fff";
        pen.fillText(text, x + 4, y + ROW / 2 + 1);
        pen.restore();
      }
    }
    pen.fillStyle = "#fff";
    pen.fillRect(0, y + 1, LEFT - 4, ROW - 1);
    pen.fillStyle = "#222";
    pen.fillText(row.label, 4, y + ROW / 2 + 1, LEFT - 10);
  });
}

const note = document.getElementById("note");
const timeAt = (x) => from + ((x - LEFT) / (canvas.clientWidth - LEFT)) * (to - from);
let dragged = null;
if (canvas) {
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const middle = timeAt(Math.max(event.offsetX, LEFT)), scale = event.deltaY > 0 ? 1.25 : 0.8;
    [from, to] = [middle - (middle - from) * scale, middle + (to - middle) * scale];
    draw();
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => { dragged = event.offsetX; });
  addEventListener("pointerup", () => { dragged = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (dragged !== null) {
      const shift = timeAt(dragged) - timeAt(event.offsetX);
      [from, to, dragged] = [from + shift, to + shift, event.offsetX];
      draw();
    }
    const row = rows[Math.floor((event.offsetY - TOP) / ROW)], time = timeAt(event.offsetX);
    const grain = (to - from) / canvas.clientWidth;
    const span = row?.spans.find((s) => s[0] - grain <= time && time <= s[1] + grain);
    note.hidden = !span;
    if (!span) return;
    note.textContent = `${span[3]}: ${(span[1] - span[0]).toFixed(2)} µs from ${span[0].toFixed(2)}`;
    note.style.left = event.clientX + 12 + "px";
    note.style.top = event.clientY + 12 + "px";
  });
  canvas.addEventListener("pointerleave", () => { note.hidden = true; });
}
addEventListener("resize", draw);
show(location.hash.slice(1));
