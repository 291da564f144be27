// Draws the map of addresses, which shows how full each cell of the heap is at a moment.

const map = { moments: [], cells: 0, bytes_per_cell: 0, ranges: [], fill: [], peak: 0, ...data.map };
const mapView = { moment: 0, cell: null, size: 10, columns: 1, timer: 0 };

const mapCanvas = () => byId("map").querySelector("canvas");

function decoded(text64) {
  return Uint8Array.from(atob(text64 || ""), (character) => character.charCodeAt(0));
}

const fillRead = new Map();
function fillAt(moment) {
  if (!fillRead.has(moment)) fillRead.set(moment, decoded(map.fill[moment]));
  return fillRead.get(moment);
}

// Returns the moment of the program's peak. The details of sites show this moment.
const peakMoment = () => Math.max(0, map.peak);

// Decodes run lengths. Calls `use(cell, value)` for each cell of a base64 text with pairs of a
// count and a value.
function eachCell(pairs64, use) {
  const pairs = decoded(pairs64);
  let cell = 0;
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    for (let left = pairs[i]; left > 0 && cell < map.cells; left--) use(cell++, pairs[i + 1]);
  }
}

// Returns how full each cell is with blocks of the chosen sites at the peak. Null if no site is
// chosen.
function chosenFill() {
  if (!isFiltered()) return null;
  const sum = new Float64Array(map.cells);
  for (const place of chosenDetails()) {
    eachCell(detail.map[place], (cell, value) => { sum[cell] = Math.min(255, sum[cell] + value); });
  }
  return sum;
}

const mapPlace = (cell) => [(cell % mapView.columns) * mapView.size, Math.floor(cell / mapView.columns) * mapView.size];

function drawMap() {
  const canvas = mapCanvas();
  const width = canvas.parentNode.clientWidth;
  mapView.columns = width < 500 ? 32 : width < 900 ? 48 : 64;
  mapView.size = width / mapView.columns;
  const rows = Math.max(1, Math.ceil(map.cells / mapView.columns));
  const context = clean(canvas, width, rows * mapView.size + 2);
  const [fill, own] = [fillAt(mapView.moment), chosenFill()];
  const [shade, chosen] = [shades("heat-low", "heat-high"), shades("cell-empty", "chosen")];
  const gap = mapView.size > 7 ? 1 : 0.5;
  for (let cell = 0; cell < map.cells; cell++) {
    const [x, y] = mapPlace(cell);
    context.fillStyle = cellInk(cell, fill, own, shade, chosen);
    context.fillRect(x + gap, y + gap, mapView.size - 2 * gap, mapView.size - 2 * gap);
  }
  drawRangeStarts(context);
  if (mapView.cell !== null) {
    context.strokeStyle = ink("text");
    context.lineWidth = 2;
    context.strokeRect(...mapPlace(mapView.cell), mapView.size, mapView.size);
  }
  sayMoment();
}

function cellInk(cell, fill, own, shade, chosen) {
  if (own) return own[cell] > 0 ? chosen(0.25 + (0.75 * own[cell]) / 255) : ink("cell-empty");
  return fill[cell] > 0 ? shade(0.1 + (0.9 * fill[cell]) / 255) : ink("cell-empty");
}

// Returns the first cell and the first address of each range of addresses.
let rangeStarts;
function ranges() {
  if (rangeStarts) return rangeStarts;
  let cell = 0;
  rangeStarts = map.ranges.map(([start, end]) => {
    const range = { cell, start: BigInt(`0x${start}`), end: BigInt(`0x${end}`) };
    const length = Number(range.end - range.start);
    cell += map.bytes_per_cell > 0 ? Math.ceil(length / map.bytes_per_cell) : 0;
    return range;
  });
  return rangeStarts;
}

// Draws a bar at the left of the first cell of each range except the first range, because addresses
// jump there.
function drawRangeStarts(context) {
  context.fillStyle = ink("dim");
  for (const { cell } of ranges().slice(1)) {
    if (cell >= map.cells) continue;
    const [x, y] = mapPlace(cell);
    context.fillRect(x, y, 2, mapView.size);
  }
}

function addressOf(cell) {
  const range = ranges().findLast((one) => one.cell <= cell);
  if (!range) return "";
  return `0x${(range.start + BigInt(cell - range.cell) * BigInt(map.bytes_per_cell)).toString(16)}`;
}

function mapLines(cell) {
  const own = chosenFill();
  const share = (own ?? fillAt(mapView.moment))[cell] / 255 || 0;
  const whose = own ? `is of ${choice.label} at the peak` : "is in use";
  return [share > 0 ? `${percent(share)} ${whose}` : "nothing is in use", `from ${addressOf(cell)}`, bytes(map.bytes_per_cell)];
}

// Counts the cells in use at a moment, and how full they are.
function useAt(moment) {
  const used = fillAt(moment).filter((value) => value > 0);
  const sum = used.reduce((all, value) => all + value, 0);
  return { used: used.length, full: used.length > 0 ? sum / used.length / 255 : 0 };
}

function sayMoment() {
  const slider = byId("moment");
  const isPeak = isFiltered();
  slider.disabled = isPeak || map.moments.length < 2;
  byId("play").disabled = slider.disabled;
  const moment = isPeak ? peakMoment() : mapView.moment;
  slider.value = moment;
  const { used, full } = useAt(moment);
  const words = map.moments.length === 0 ? "Nothing to show: the trace has no addresses."
    : `${time(map.moments[moment])}${isPeak ? ", near the peak" : ""}: ${count(used)} of ${count(map.cells)} cells in use, ${percent(full)} full`;
  byId("moment-words").textContent = words;
  slider.setAttribute("aria-valuetext", words);
}

function mapTable() {
  return [["time", "cells in use", "of all cells", "how full they are"], ...map.moments.map((t, moment) => {
    const { used, full } = useAt(moment);
    return [[time(t), t], [count(used), used], [percent(map.cells ? used / map.cells : 0), used], [percent(full), full]];
  })];
}

function mapAt(x, y) {
  const cell = Math.floor(y / mapView.size) * mapView.columns + Math.floor(x / mapView.size);
  return x >= 0 && y >= 0 && x < mapView.columns * mapView.size && cell < map.cells ? cell : null;
}

function showMoment(moment) {
  mapView.moment = moment;
  drawMap();
}

function play() {
  const button = byId("play");
  const stop = () => {
    clearInterval(mapView.timer);
    mapView.timer = 0;
    button.textContent = "play";
  };
  if (mapView.timer) return stop();
  if (mapView.moment >= map.moments.length - 1) mapView.moment = 0;
  button.textContent = "stop";
  mapView.timer = setInterval(() => {
    if (mapView.moment >= map.moments.length - 1 || isFiltered()) stop();
    else showMoment(mapView.moment + 1);
  }, 150);
}

function startMap() {
  plot("map", drawMap, mapTable);
  const slider = byId("moment");
  slider.max = Math.max(0, map.moments.length - 1);
  mapView.moment = peakMoment();
  slider.addEventListener("input", () => showMoment(Number(slider.value)));
  byId("play").addEventListener("click", play);
  const step = (cell, dx, dy) => Math.min(map.cells - 1, Math.max(0, cell + dx + dy * mapView.columns));
  walk(mapCanvas(), byId("map-said"), {
    at: mapAt, step, words: mapLines, first: () => (map.cells ? 0 : null),
    frame: (cell) => { mapView.cell = cell; drawMap(); },
  });
  if (map.bytes_per_cell > 0) byId("map-cell").textContent = `One cell is ${bytes(map.bytes_per_cell)}.`;
}
