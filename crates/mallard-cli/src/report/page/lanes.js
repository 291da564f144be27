// Draws the instances of a region over time, with a lane for each thread and a bar for each
// instance. Blocks that outlive their instance are red.

const lanesView = { region: 0, cell: null, threads: [], left: 0, width: 0, t0: 0, t1: 1 };
const laneHeight = 30;

const lanesCanvas = () => byId("lanes").querySelector("canvas");
const noLanes = { thread: [], t0: [], took: [], blocks: [], bytes: [], escapes: [], teardown: [] };
const noRegion = { name: "", ends: "", instances: 0, threads: 0, blocks: 0, duration_p50: 0, peak_p50: 0, escapes: 0, escape_bytes: 0 };
const regions = listOf(data.regions).map((of) => ({ ...noRegion, ...of, lanes: { ...noLanes, ...of.lanes } }));
const lanesNow = () => regions[lanesView.region]?.lanes ?? noLanes;

const endWords = {
  sure: "ends when the function has returned", drained: "ends when the last of its blocks is freed", exact: "ends where the program marks it",
};

function laneThread(tid) {
  const place = threads.tid.indexOf(tid);
  return place >= 0 ? threadName(place) : `thread ${tid}`;
}

// Chooses the region that is drawn.
function showRegion(place) {
  Object.assign(lanesView, { region: place, cell: null });
  byId("lanes-of").value = place;
  byId("lanes-said").textContent = "";
  lanesPlot.draw();
}

function measureLanes(width) {
  const lanes = lanesNow();
  lanesView.threads = [...new Set(lanes.thread)].sort((a, b) => a - b);
  lanesView.left = width < 500 ? 76 : 130;
  lanesView.width = Math.max(1, width - lanesView.left - 12);
  lanesView.t0 = lanes.t0.reduce((least, t) => Math.min(least, t), Infinity);
  const last = lanes.t0.reduce((most, t, i) => Math.max(most, t + lanes.took[i]), -Infinity);
  if (!Number.isFinite(lanesView.t0)) lanesView.t0 = 0;
  lanesView.t1 = Math.max(lanesView.t0 + 1, Number.isFinite(last) ? last : 0);
}

const laneX = (t) => lanesView.left + ((t - lanesView.t0) / (lanesView.t1 - lanesView.t0)) * lanesView.width;

// Returns the left, top, width and height of a bar. Even a short instance is visible.
function barOf(cell) {
  const lanes = lanesNow();
  const row = lanesView.threads.indexOf(lanes.thread[cell]);
  const [begin, end] = [laneX(lanes.t0[cell]), laneX(lanes.t0[cell] + lanes.took[cell])];
  return [begin, row * laneHeight + 6, Math.max(2, end - begin), laneHeight - 10];
}

function drawLane(context, cell) {
  const lanes = lanesNow();
  const [x, y, wide, high] = barOf(cell);
  context.fillStyle = ink("lane");
  context.fillRect(x, y, wide, high);
  const teardown = lanes.took[cell] > 0 ? Math.min(1, lanes.teardown[cell] / lanes.took[cell]) * wide : 0;
  if (teardown >= 1) {
    context.fillStyle = ink("lane-end");
    context.fillRect(x + wide - teardown, y, teardown, high);
  }
  if (lanes.escapes[cell] > 0) {
    // The red part has at least a third of the height, so that a single block that escapes is
    // visible.
    const red = high * Math.max(1 / 3, Math.min(1, lanes.escapes[cell] / Math.max(1, lanes.blocks[cell])));
    context.fillStyle = ink("escape");
    context.fillRect(x, y + high - red, wide, red);
  }
}

function drawLanes() {
  const canvas = lanesCanvas();
  const width = canvas.parentNode.clientWidth;
  measureLanes(width);
  const lanes = lanesNow();
  const bottom = Math.max(1, lanesView.threads.length) * laneHeight;
  const context = clean(canvas, width, bottom + 40);
  for (const [row, thread] of lanesView.threads.entries()) {
    context.fillStyle = ink("cell-empty");
    context.fillRect(lanesView.left, row * laneHeight + 4, lanesView.width, laneHeight - 6);
    context.fillStyle = ink("dim");
    context.textAlign = "right";
    context.fillText(cut(context, laneThread(thread), lanesView.left - 12), lanesView.left - 8, row * laneHeight + laneHeight / 2);
  }
  // Instances with escaping blocks are drawn last, so that they are on top.
  const cells = lanes.t0.map((_, cell) => cell);
  for (const cell of cells.filter((one) => !(lanes.escapes[one] > 0))) drawLane(context, cell);
  for (const cell of cells.filter((one) => lanes.escapes[one] > 0)) drawLane(context, cell);
  drawLaneTimes(context, bottom);
  if (lanesView.cell !== null) {
    const [x, y, wide, high] = barOf(lanesView.cell);
    context.strokeStyle = ink("text");
    context.lineWidth = 2;
    context.strokeRect(x - 2, y - 2, wide + 4, high + 4);
  }
  sayRegion();
}

// Draws some times below the lanes.
function drawLaneTimes(context, bottom) {
  if (lanesNow().t0.length === 0) return;
  const steps = lanesView.width < 500 ? 2 : 6;
  context.fillStyle = ink("dim");
  for (let step = 0; step <= steps; step++) {
    const t = lanesView.t0 + ((lanesView.t1 - lanesView.t0) * step) / steps;
    const x = laneX(t);
    context.fillRect(x, bottom, 1, 5);
    context.textAlign = step === 0 ? "left" : step === steps ? "right" : "center";
    context.fillText(moment(t), x, bottom + 14);
  }
  context.textAlign = "center";
  context.fillText("time since the start", lanesView.left + lanesView.width / 2, bottom + 31);
}

// Formats a time with as many digits as are needed to distinguish the ticks of the axis.
function moment(t) {
  const span = lanesView.t1 - lanesView.t0;
  const [unit, scale] = t < 1e6 ? ["us", 1e3] : t < 1e9 ? ["ms", 1e6] : ["s", 1e9];
  const digits = Math.min(6, Math.max(0, Math.ceil(1 - Math.log10(span / 6 / scale))));
  return `${(t / scale).toFixed(digits)} ${unit}`;
}

function sayRegion() {
  const of = regions[lanesView.region];
  const box = byId("lanes-words");
  box.replaceChildren();
  const list = byId("escape-sites");
  list.replaceChildren();
  if (!of) return;
  const place = of.file ? ` (${of.line >= 0 ? `${of.file}:${of.line}` : of.file})` : "";
  const shown = of.lanes.t0.length;
  write(box, `${of.name}${place} ${endWords[of.ends] ?? ""}. ${plural(of.instances, "instance")} in ${plural(of.threads, "thread")}${
    shown < of.instances ? `, of which ${count(shown)} are drawn` : ""}. Half of them take at most ${time(of.duration_p50)} and have at most ${
    bytes(of.peak_p50)} in use. ${of.escapes > 0 ? `${plural(of.escapes, "block")} (${bytes(of.escape_bytes)}) of ${count(of.blocks)} outlive their instance:` : "No block outlives its instance."}`);
  for (const site of listOf(of.escape_sites)) write(add(list, "li", ""), `${plural(site.blocks, "block")}, ${bytes(site.bytes)}, allocated by ${site.name}`);
}

function laneLines(cell) {
  const lanes = lanesNow();
  const escapes = lanes.escapes[cell];
  return [`${plural(lanes.blocks[cell], "block")}, ${bytes(lanes.bytes[cell])}`,
    `${laneThread(lanes.thread[cell])}, after ${time(lanes.t0[cell])}, for ${time(lanes.took[cell])}`,
    escapes > 0 ? `${plural(escapes, "block")} ${escapes === 1 ? "outlives" : "outlive"} the instance` : "no block outlives the instance",
    lanes.teardown[cell] > 0 ? `${time(lanes.teardown[cell])} of frees at its end` : ""].filter(Boolean);
}

// Returns the instances of a thread.
const cellsOf = (thread) => [...lanesNow().t0.keys()].filter((cell) => lanesNow().thread[cell] === thread);

// Returns the instance at a point. Among several near the point, one with escaping blocks comes
// first, then the nearest.
function laneAt(x, y) {
  const thread = lanesView.threads[Math.floor(y / laneHeight)];
  if (thread === undefined || x < lanesView.left - 4) return null;
  const near = cellsOf(thread).map((cell) => {
    const [begin, , wide] = barOf(cell);
    return { cell, far: Math.max(begin - x, x - begin - wide, 0) };
  }).filter(({ far }) => far <= 4);
  near.sort((a, b) => (lanesNow().escapes[b.cell] > 0) - (lanesNow().escapes[a.cell] > 0) || a.far - b.far);
  return near.length > 0 ? near[0].cell : null;
}

function laneStep(cell, dx, dy) {
  const lanes = lanesNow();
  const row = lanesView.threads.indexOf(lanes.thread[cell]);
  if (dy === 0) {
    const own = cellsOf(lanes.thread[cell]);
    return own[Math.min(own.length - 1, Math.max(0, own.indexOf(cell) + dx))];
  }
  const thread = lanesView.threads[Math.min(lanesView.threads.length - 1, Math.max(0, row + dy))];
  if (thread === lanes.thread[cell]) return cell;
  const far = (other) => Math.abs(lanes.t0[other] - lanes.t0[cell]);
  return cellsOf(thread).reduce((best, other) => (far(other) < far(best) ? other : best));
}

function lanesTable() {
  const lanes = lanesNow();
  return [["thread", "begins", "takes", "blocks", "bytes", "escape", "frees at its end"], ...lanes.t0.map((t, cell) => [
    laneThread(lanes.thread[cell]), [time(t), t], [time(lanes.took[cell]), lanes.took[cell]], [count(lanes.blocks[cell]), lanes.blocks[cell]],
    [bytes(lanes.bytes[cell]), lanes.bytes[cell]], [count(lanes.escapes[cell]), lanes.escapes[cell]], [time(lanes.teardown[cell]), lanes.teardown[cell]]])];
}

let lanesPlot = null;

function startLanes() {
  showSection("lanes", regions.length > 0);
  for (const [place, of] of regions.entries()) {
    const option = add(byId("lanes-of"), "option", `${of.name}, ${of.ends}: ${plural(of.instances, "instance")}${of.escapes > 0 ? ", some escape" : ""}`);
    option.value = place;
  }
  byId("lanes-of").addEventListener("change", (event) => showRegion(Number(event.target.value)));
  lanesPlot = plot("lanes", drawLanes, lanesTable);
  walk(lanesCanvas(), byId("lanes-said"), {
    at: laneAt, step: laneStep, words: laneLines, first: () => (lanesNow().t0.length ? 0 : null),
    frame: (cell) => { lanesView.cell = cell; drawLanes(); },
  });
}
