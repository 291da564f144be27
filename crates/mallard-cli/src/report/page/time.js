// Draws live and resident bytes over time, with the parts of resident memory.

const times = { t_ns: [], live: [], resident: [], split: {}, ...data.time };

// The parts of resident memory in the order in which they are stacked.
const parts = {
  live: ["in use", "Bytes that the program has requested and not freed."],
  rounding: ["rounding", "Bytes that the allocator adds to each block, to reach its next size."],
  fragmented: ["gaps", "Free space on pages that still hold a block in use: fragmentation."],
  kept: ["kept by the allocator", "Pages of the allocator without a block in use, not yet returned to the system."],
  code: ["code and files", "The program itself, its libraries and the files that it maps."],
  stacks: ["stacks and other", "Stacks of threads, and memory that is not of the allocator."],
  recorder: ["recorder", "What mallard record adds to the program; it is not there without a recording."],
};

const hasSplit = () => Object.keys(parts).some((part) => (times.split[part] ?? []).length > 0);
const shownParts = () => (hasSplit() ? Object.keys(parts).filter((part) => times.split[part]?.length > 0) : ["live"]);
const partValues = (part) => (hasSplit() ? times.split[part] : times.live);
const hasResident = () => times.resident.some((value) => value !== null && value !== undefined);
const points = (moments, values) => moments.map((t, i) => ({ x: t, y: values[i] ?? null }));

function area(part) {
  return {
    label: parts[part][0], data: points(times.t_ns, partValues(part)), stack: "memory", fill: true,
    backgroundColor: ink(`part-${part}`), borderColor: ink(`part-${part}`), borderWidth: 0, pointRadius: 0,
    pointStyle: "rect", order: 2,
  };
}

function residentLine() {
  return {
    label: "resident memory", data: points(times.t_ns, times.resident), stack: "resident", fill: false, spanGaps: true,
    borderColor: ink("text"), backgroundColor: ink("text"), borderWidth: 1.5, borderDash: [5, 3], pointRadius: 0,
    pointStyle: "line", order: 1,
  };
}

// Returns the sum of the live bytes of the chosen sites.
function chosenLive() {
  const sum = new Float64Array(detail.live_t.length);
  for (const place of chosenDetails()) {
    for (const [i, value] of (detail.live[place] ?? []).entries()) sum[i] += value;
  }
  return [...sum];
}

function timeSets() {
  if (isFiltered()) {
    return [{
      label: `in use, from ${choice.label.slice(0, 60)}`, data: points(detail.live_t, chosenLive()), fill: true, stack: "chosen",
      backgroundColor: ink("chosen-soft"), borderColor: ink("chosen"), borderWidth: 2, pointRadius: 0, pointStyle: "rect",
    }];
  }
  return [...shownParts().map(area), ...(hasResident() ? [residentLine()] : [])];
}

// Returns the distance between the lines of the chart, a power of two, so that the lines are at
// round numbers of KiB, MiB or GiB.
function byteStep() {
  const tops = isFiltered() ? chosenLive() : [...times.live, ...times.resident];
  const most = tops.reduce((top, value) => Math.max(top, value ?? 0), 8);
  return 2 ** Math.ceil(Math.log2(most / 7));
}

const wholeBytes = (value) => bytes(value).replace(".0 ", " ");

function timeChart() {
  const x = { ...chartAxis("time since the start", { type: "linear", min: 0, max: times.t_ns.at(-1) }, seconds), grid: { display: false } };
  x.ticks.includeBounds = false;
  const y = { ...chartAxis("", { type: "linear", min: 0, stacked: true }, wholeBytes), title: { display: false } };
  y.ticks.stepSize = byteStep();
  const options = chartOptions(x, y, (item) => `${item.dataset.label}: ${bytes(item.raw.y ?? 0)}`);
  options.interaction = { mode: "index", intersect: false };
  options.parsing = false;
  options.normalized = true;
  options.plugins.tooltip.callbacks.title = (items) => (items.length ? time(items[0].raw.x) : "");
  options.plugins.legend.display = false; // The list below the chart is the legend.
  return { type: "line", data: { datasets: timeSets() }, options };
}

function timeLines() {
  if (isFiltered()) {
    const live = chosenLive();
    return [["time", "in use"], ...detail.live_t.map((t, i) => [[time(t), t], [bytes(live[i]), live[i]]])];
  }
  const cell = (value) => (value === null || value === undefined ? ["", ""] : [bytes(value), value]);
  const shown = shownParts();
  return [["time", ...shown.map((part) => parts[part][0]), "resident"],
    ...times.t_ns.map((t, i) => [[time(t), t], ...shown.map((part) => cell(partValues(part)[i])), cell(times.resident[i])])];
}

// Fills the legend, which has each part with its colour, its bytes at the peak of resident memory,
// and an explanation.
function timeLegend() {
  const peak = times.resident.reduce((best, value, i) => ((value ?? -1) > (times.resident[best] ?? -1) ? i : best), 0);
  byId("time-parts").replaceChildren();
  // When sites are chosen, the list becomes fainter but stays in place, so that the table below
  // does not move.
  byId("time-parts").classList.toggle("faint", isFiltered());
  for (const part of shownParts()) {
    const row = add(byId("time-parts"), "div", "");
    const name = add(row, "dt", parts[part][0]);
    name.style.setProperty("--swatch", `var(--part-${part})`);
    const value = partValues(part)[peak];
    const words = value === undefined || value === null ? "" : `${bytes(value)} at the peak of resident memory. `;
    add(row, "dd", words + parts[part][1]);
  }
  if (hasResident()) {
    const row = add(byId("time-parts"), "div", "", "line");
    add(row, "dt", "resident memory");
    add(row, "dd", `${bytes(times.resident[peak])} at the peak. All physical memory that the program used.`);
  }
}

function drawTime() {
  timeLegend();
  const hasPoints = times.t_ns.length > 0;
  chartOrTable("time", { hasPoints, chart: timeChart, why: "Nothing to draw: the trace has no moments.", opens: hasPoints });
}

function startTime() {
  plot("time", drawTime, timeLines);
}
