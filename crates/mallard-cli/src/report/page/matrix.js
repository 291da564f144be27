// Draws the matrix of all changes that were measured, as CPU time against memory, both relative to
// the unchanged program.

const changes = listOf(data.advice?.matrix);
const measuredChanges = () => changes.filter((row) => Number.isFinite(row.saving) && Number.isFinite(row.memory_saving));
const kinds = {
  strategy: { label: "local allocators in a region or a structure", color: "part-live", style: "circle" },
  malloc: { label: "another malloc", color: "part-kept", style: "rectRot" },
  variable: { label: "a setting of the malloc", color: "part-stacks", style: "triangle" },
};

// Returns the share of today's figure that is left after a saving.
const remaining = (saving) => 1 - saving;

const pointOf = (row) => ({
  x: remaining(row.memory_saving), y: remaining(row.saving), row,
  xLow: remaining(row.memory_high ?? row.memory_saving), xHigh: remaining(row.memory_low ?? row.memory_saving),
  yLow: remaining(row.high ?? row.saving), yHigh: remaining(row.low ?? row.saving),
});

const changeName = (row) => row.label ?? row.name ?? "";

// Returns the name next to a point, without the region if all points have the same region.
function pointName(row) {
  const places = new Set(measuredChanges().filter((one) => one.kind === "strategy").map(changeName).map((name) => name.replace(/^\S+/, "")));
  return places.size > 1 ? changeName(row) : row.name ?? "";
}

function matrixSets() {
  const sets = Object.entries(kinds).map(([kind, { label, color: name, style }]) => ({
    label, data: measuredChanges().filter((row) => row.kind === kind).map(pointOf), pointStyle: style,
    backgroundColor: ink(name), borderColor: ink(name), pointRadius: 6, pointHoverRadius: 8,
  }));
  const today = { x: 1, y: 1, row: { name: "as it is" } };
  sets.push({ label: "as it is", data: [today], pointStyle: "crossRot", borderColor: ink("text"), backgroundColor: ink("text"), borderWidth: 2, pointRadius: 7, pointHoverRadius: 8 });
  return sets.filter((set) => set.data.length > 0);
}

// Draws the intervals of all points, and names next to the points if there is room.
const intervalsAndNames = {
  id: "intervals",
  afterDatasetsDraw(chart) {
    const { ctx, scales: { x, y }, chartArea: area } = chart;
    ctx.save();
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    const taken = [];
    for (const [place, set] of chart.data.datasets.entries()) {
      if (!chart.isDatasetVisible(place)) continue;
      for (const point of set.data) {
        const [left, top] = [x.getPixelForValue(point.x), y.getPixelForValue(point.y)];
        if (Number.isFinite(point.xLow)) drawInterval(ctx, set.borderColor, point, x, y, left, top);
        writeName(ctx, pointName(point.row), left, top, area, taken);
      }
    }
    ctx.restore();
  },
};

function drawInterval(context, color, point, x, y, left, top) {
  context.strokeStyle = color;
  context.lineWidth = 1.25;
  context.beginPath();
  context.moveTo(x.getPixelForValue(point.xLow), top);
  context.lineTo(x.getPixelForValue(point.xHigh), top);
  context.moveTo(left, y.getPixelForValue(point.yLow));
  context.lineTo(left, y.getPixelForValue(point.yHigh));
  context.stroke();
}

// Writes a name above a point, to the right or to the left, unless another name is there.
function writeName(context, words, x, y, area, taken) {
  const shown = cut(context, words, 170);
  const width = context.measureText(shown).width;
  for (const left of [x + 6, x - 6 - width]) {
    const box = { left, right: left + width, top: y - 18, bottom: y - 4 };
    const isFree = box.left >= area.left && box.right <= area.right && !taken.some((other) =>
      box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom);
    if (!isFree) continue;
    taken.push(box);
    context.fillStyle = ink("text");
    context.fillText(shown, left, y - 11);
    return;
  }
}

// Returns the range of an axis, which contains all intervals and the unchanged program, with some
// margin.
function rangeOf(values) {
  const [least, most] = [Math.min(1, ...values), Math.max(1, ...values)];
  const room = Math.max(0.02, (most - least) * 0.08);
  return { min: Math.max(0, least - room), max: most + room };
}

function matrixChart() {
  const points = measuredChanges().map(pointOf);
  const finite = (values) => values.filter(Number.isFinite);
  const xs = finite(points.flatMap((point) => [point.x, point.xLow, point.xHigh]));
  const ys = finite(points.flatMap((point) => [point.y, point.yLow, point.yHigh]));
  const isWide = Math.max(...xs) > 4 && Math.min(...xs) > 0;
  const share = (value) => `${Number((value * 100).toPrecision(3))} %`;
  const x = chartAxis("memory at the peak, of today's", { type: isWide ? "logarithmic" : "linear", ...rangeOf(xs) }, share);
  const y = chartAxis("CPU time, of today's", { type: "linear", ...rangeOf(ys) }, share);
  for (const axis of [x, y]) axis.ticks.includeBounds = false;
  const options = chartOptions(x, y, (item) => changeLines(item.raw.row));
  options.plugins.tooltip.callbacks.title = () => "";
  return { type: "scatter", data: { datasets: matrixSets() }, options, plugins: [intervalsAndNames] };
}

// Returns the lines that describe a change.
function changeLines(row) {
  if (!Number.isFinite(row.saving)) return [changeName(row)];
  const memory = { saving: row.memory_saving, low: row.memory_low, high: row.memory_high };
  return [changeName(row), `CPU time saved: ${interval(row)}, ${row.verdict}`, `memory saved: ${interval(memory)}, ${row.memory_verdict}`,
    measuredWords[row.measured_by] ?? ""].filter(Boolean);
}

const shareCell = (value) => (Number.isFinite(value) ? [percent(value), value] : ["", ""]);
const rangeCell = (part) => (part ? [range(part), part.low] : ["", ""]);
const bytesCell = (value) => (Number.isFinite(value) ? [bytes(value), value] : ["", ""]);

function matrixTable() {
  const titles = ["change", "CPU time saved", "from", "to", "verdict", "likely in the program", "predicted before", "memory saved",
    "from", "to", "memory after", "memory before", "how", "why not measured"];
  const lines = changes.map((row) => [
    changeName(row), shareCell(row.saving), shareCell(row.low), shareCell(row.high), row.verdict ?? "", rangeCell(row.expected),
    rangeCell(row.predicted), shareCell(row.memory_saving), shareCell(row.memory_low), shareCell(row.memory_high),
    bytesCell(row.peak_bytes), bytesCell(row.base_peak_bytes), row.measured_by ?? "", row.dropped ?? ""]);
  // Leaves out columns without any figure or word.
  const kept = titles.map((_, column) => column === 0 || lines.some((line) => line[column] !== "" && line[column][0] !== ""));
  return [titles, ...lines].map((line) => line.filter((_, column) => kept[column]));
}

function drawMatrix() {
  const why = "Nothing to draw: no change was measured. The table has the reasons.";
  chartOrTable("matrix", { hasPoints: measuredChanges().length > 0, chart: matrixChart, why, opens: changes.length > 0 });
}

function startMatrix() {
  showSection("matrix", changes.length > 0);
  byId("matrix-words").textContent = `${plural(measuredChanges().length, "change")} of ${count(changes.length)} were measured. ${
    changes.some((row) => row.measured_by === "try") ? "Changes that were measured in runs of the program have its resident memory; the others have the heap." : ""}`;
  plot("matrix", drawMatrix, matrixTable);
}
