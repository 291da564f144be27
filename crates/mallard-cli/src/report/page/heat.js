// Draws the heat map of sizes and lifetimes, which shows how many blocks, or bytes, of each size
// live for how long.

const heat = { sizes: [], lives: [], all: [], bytes: [], ...data.heat };
const heatView = { of: "count", cell: null, left: 0, top: 0, wide: 0, high: 0 };

const heatCanvas = () => byId("heat").querySelector("canvas");

// Returns the figures of the heat map. For chosen sites, only counts of blocks exist.
function heatValues() {
  if (isFiltered()) return chosenCounts("heat", heat.sizes.length * heat.lives.length);
  return heatView.of === "bytes" ? heat.bytes : heat.all;
}

const heatWrite = () => (heatView.of === "bytes" && !isFiltered() ? bytes : (n) => plural(n, "block"));

// Returns the strength of the colour of a figure, from 0 to 1. The cube root keeps small figures
// visible next to large ones.
const strength = (value, most) => 0.06 + 0.94 * Math.cbrt(value / most);

// Draws the cells of a grid. A larger value has a stronger colour.
function drawCells(context, values, columns, place, size) {
  const most = values.reduce((best, value) => Math.max(best, value), 0);
  const shade = shades("heat-low", "heat-high");
  for (const [cell, value] of values.entries()) {
    const [x, y] = place(cell % columns, Math.floor(cell / columns));
    context.fillStyle = value > 0 ? shade(strength(value, most)) : ink("cell-empty");
    context.fillRect(x + 1, y + 1, Math.max(1, size[0] - 2), Math.max(1, size[1] - 2));
  }
}

function heatPlace(column, row) {
  const { left, top, wide, high } = heatView;
  return [left + column * wide, top + (heat.lives.length - 1 - row) * high];
}

function drawHeat() {
  const canvas = heatCanvas();
  const width = canvas.parentNode.clientWidth;
  const columns = Math.max(1, heat.sizes.length);
  Object.assign(heatView, { left: width < 500 ? 84 : 92, top: 4, high: 26 });
  heatView.wide = (width - heatView.left) / columns;
  const bottom = heatView.top + heat.lives.length * heatView.high;
  const context = clean(canvas, width, bottom + 40);
  drawCells(context, [...heatValues()], columns, heatPlace, [heatView.wide, heatView.high]);
  context.fillStyle = ink("dim");
  context.textAlign = "right";
  for (const [row, life] of heat.lives.entries()) {
    context.fillText(life, heatView.left - 8, heatPlace(0, row)[1] + heatView.high / 2);
  }
  drawSizes(context, width, bottom);
  if (heatView.cell !== null) frameHeat(context);
  byId("heat-of").disabled = isFiltered();
}

// Draws the sizes below the map, as many as fit.
function drawSizes(context, width, bottom) {
  context.textAlign = "center";
  const each = Math.max(1, Math.ceil(54 / heatView.wide));
  for (let column = 0; column < heat.sizes.length; column += each) {
    const x = heatPlace(column, 0)[0] + heatView.wide / 2;
    context.fillText(heat.sizes[column], Math.min(x, width - 22), bottom + 12);
  }
  context.fillText("size of the block, up to", heatView.left + (width - heatView.left) / 2, bottom + 30);
}

function frameHeat(context) {
  const [x, y] = heatPlace(heatView.cell % heat.sizes.length, Math.floor(heatView.cell / heat.sizes.length));
  context.strokeStyle = ink("text");
  context.lineWidth = 2;
  context.strokeRect(x, y, heatView.wide, heatView.high);
}

// Describes the sizes of a column. The last column has all sizes above the bound of the column
// before it.
function sizeWords(column) {
  const isLast = column === heat.sizes.length - 1 && column > 0;
  return isLast ? `size above ${heat.sizes[column - 1]}` : `size up to ${heat.sizes[column]}`;
}

function heatLines(cell) {
  const values = heatValues();
  const sum = values.reduce((all, value) => all + value, 0);
  const value = values[cell] ?? 0;
  const life = heat.lives[Math.floor(cell / heat.sizes.length)];
  return [`${heatWrite()(value)}, ${percent(sum > 0 ? value / sum : 0)}`,
    sizeWords(cell % heat.sizes.length), /^\W*[\d<>]/.test(life) ? `lived ${life}` : life];
}

function heatTable() {
  const values = heatValues();
  const write = heatView.of === "bytes" && !isFiltered() ? bytes : count;
  return [["lifetime", ...heat.sizes], ...heat.lives.map((life, row) => [life, ...heat.sizes.map((_, column) => {
    const value = values[row * heat.sizes.length + column] ?? 0;
    return value > 0 ? [write(value), value] : ["", ""];
  })])];
}

function heatAt(x, y) {
  const column = Math.floor((x - heatView.left) / heatView.wide);
  const row = heat.lives.length - 1 - Math.floor((y - heatView.top) / heatView.high);
  const isInside = x >= heatView.left && column < heat.sizes.length && row >= 0 && row < heat.lives.length;
  return isInside ? row * heat.sizes.length + column : null;
}

function heatStep(cell, dx, dy) {
  const columns = heat.sizes.length;
  const column = Math.min(columns - 1, Math.max(0, (cell % columns) + dx));
  const row = Math.min(heat.lives.length - 1, Math.max(0, Math.floor(cell / columns) - dy));
  return row * columns + column;
}

function startHeat() {
  const one = plot("heat", drawHeat, heatTable);
  walk(heatCanvas(), byId("heat-said"), {
    at: heatAt, step: heatStep, words: heatLines, first: () => (heat.lives.length ? 0 : null),
    frame: (cell) => { heatView.cell = cell; drawHeat(); },
  });
  byId("heat-of").addEventListener("change", (event) => { heatView.of = event.target.value; one.draw(); });
}
