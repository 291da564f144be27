// Helpers for the plots that draw on a canvas without Chart.js: sharp lines, colours, and the table
// of each plot.

// Sets the size of a canvas in CSS pixels, and returns its empty context. One unit is one CSS
// pixel.
function clean(canvas, width, height) {
  const scale = Math.min(devicePixelRatio || 1, 2);
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  return context;
}

// Colours are read once for each theme, because reading a colour makes the browser compute styles.
let coloursRead = new Map();
function ink(name) {
  if (!coloursRead.has(name)) coloursRead.set(name, colour(name));
  return coloursRead.get(name);
}

// Returns the red, green and blue channels of a colour of the theme.
function channels(name) {
  const context = document.createElement("canvas").getContext("2d");
  context.fillStyle = ink(name);
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

// Returns a function that maps a share, from 0 to 1, to a colour between two colours of the theme.
function shades(from, to) {
  const [low, high] = [channels(from), channels(to)];
  return (share) => {
    const at = Math.min(1, Math.max(0, share));
    return `rgb(${low.map((c, i) => Math.round(c + (high[i] - c) * at)).join(" ")})`;
  };
}

// Shortens a text to a width in pixels, with an ellipsis.
function cut(context, words, width) {
  if (context.measureText(words).width <= width) return words;
  let [least, most] = [0, words.length];
  while (least < most) {
    const middle = (least + most + 1) >> 1;
    if (context.measureText(`${words.slice(0, middle)}…`).width <= width) least = middle;
    else most = middle - 1;
  }
  return least > 0 ? `${words.slice(0, least)}…` : "";
}

const plots = [];

// Declares a plot. `draw` draws the plot, and `lines` returns the table with its figures. A plot is
// drawn again when its width, the theme or the choice of sites changes.
function plot(id, draw, lines) {
  const box = byId(id);
  const details = box.querySelector("details.figures");
  const table = details.querySelector("table");
  const fill = () => {
    if (details.open) tabulate(table, lines());
  };
  const one = { fill, draw: () => { draw(); fill(); } };
  details.addEventListener("toggle", fill);
  plots.push(one);
  let width = 0;
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (width !== 0 && now !== width) one.draw();
    width = now;
  }).observe(box);
  return one;
}

// Draws a chart of Chart.js in a section. If there is nothing to draw, or no Chart.js, shows `why`,
// and with `opens` shows the table in place of the chart.
function chartOrTable(id, { hasPoints, chart, why, opens }) {
  const box = byId(id);
  const canvas = box.querySelector("canvas");
  const isMissing = !hasChartJs() || !hasPoints;
  canvas.parentNode.hidden = isMissing;
  const missing = box.querySelector(".missing");
  missing.hidden = !isMissing;
  missing.textContent = hasPoints
    ? "There is no plot, because mallard was built without Chart.js. The table has the figures." : why;
  if (isMissing && opens) box.querySelector("details.figures").open = true;
  drawChart(canvas, isMissing ? undefined : chart());
}

// Shows or hides a section and its link in the bar.
function showSection(id, isShown) {
  byId(id).hidden = !isShown;
  document.querySelector(`.controls nav a[href="#${id}"]`).hidden = !isShown;
}

function drawPlots() {
  coloursRead = new Map();
  for (const one of plots) one.draw();
}

// Returns the position of the pointer in a canvas, in CSS pixels.
function placeIn(canvas, event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

// Lets a reader explore the cells of a canvas by pointer and by arrow keys. `at(x, y)` returns the
// cell at a point, `step(cell, dx, dy)` the next cell in a direction, and `words(cell)` the lines
// that describe a cell. `frame(cell)` draws a frame around a cell.
function walk(canvas, said, { at, step, first, words, frame }) {
  let cell = null;
  const show = (next) => {
    cell = next;
    frame(cell);
    said.textContent = cell === null ? "" : words(cell).join(", ");
  };
  canvas.addEventListener("pointermove", (event) => {
    const under = at(...placeIn(canvas, event));
    if (under === null) return hideTip();
    showTip(event.clientX, event.clientY, words(under));
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("click", (event) => show(at(...placeIn(canvas, event))));
  canvas.addEventListener("blur", () => { cell = null; frame(null); });
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    show(cell === null ? first() : step(cell, ...move));
  });
}
