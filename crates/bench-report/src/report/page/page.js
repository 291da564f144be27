// The benchmark page contains all tables. The selectors only show and hide them.

const data = JSON.parse(byId("data").textContent);
const machine = () => byId("machine").value;
const chosen = () => document.querySelector(`.machine[data-machine="${machine()}"]`);

// --- showing and hiding ----------------------------------------------------

// Returns a function that checks whether the filter shows an allocator. A name is shown if it
// matches any word of the filter. A word that is not a valid regular expression is compared as
// text.
function wanted() {
  const words = byId("filter").value.split(/\s+/).filter(Boolean).map((word) => {
    try {
      return new RegExp(word, "i");
    } catch {
      return { test: (name) => name.includes(word) };
    }
  });
  return (name) => words.length === 0 || words.some((word) => word.test(name));
}

function filter() {
  const is = wanted();
  const hidden = data.contenders.map((name, i) => (is(name) ? "" : ".c" + i)).filter(Boolean);
  byId("filtered").textContent = hidden.length ? hidden.join() + "{display:none}" : "";
  const words = byId("filter").value.trim();
  const none = words !== "" && hidden.length === data.contenders.length;
  byId("unmatched").hidden = !none;
  byId("unmatched").textContent = none ? `No contender has a name that matches "${words}". Names are, for example: ${examples()}.` : "";
}

// Returns names of allocators, as examples of what the filter can find.
function examples() {
  const step = Math.max(1, Math.floor(data.contenders.length / 5));
  return data.contenders.filter((_, i) => i % step === 0).slice(0, 5).join(", ");
}

function choose() {
  const variant = byId("variant").value;
  const kind = byId("kind").value;
  for (const one of document.querySelectorAll(".machine")) one.hidden = one !== chosen();
  for (const table of document.querySelectorAll(".t")) {
    const other = (of, value) => of !== undefined && of !== value;
    table.hidden = other(table.dataset.variant, variant) || other(table.dataset.kind, kind);
  }
  for (const section of document.querySelectorAll(".section")) {
    const tables = [...section.querySelectorAll(".t")];
    const none = section.querySelector(":scope > .none");
    if (none) none.hidden = tables.length === 0 || tables.some((table) => !table.hidden);
  }
}

// A section that is opened for the first time must follow the selectors, too.
document.addEventListener("toggle", (event) => {
  if (event.target.open && event.target.matches?.("details[data-packed]")) unpack(event.target, choose);
}, true);

// --- charts ----------------------------------------------------------------

const palette = ["#2f7fd1", "#e8833a", "#2a9d6f", "#b04fc4", "#c9a100", "#d1495b",
  "#00a0b0", "#7a6ff0", "#8a8d2f", "#a0522d"];
const shapes = ["circle", "rect", "triangle", "rectRot", "star", "crossRot"];

// Returns the style of an allocator in a chart. Mallard's lines are thick. `place` is the index
// among all allocators of the chart, so a colour stays the same whatever the filter shows.
function look(contender, place) {
  const hue = palette[place % palette.length];
  const ours = contender.startsWith("mallard/");
  return {
    label: contender, borderColor: hue, backgroundColor: hue, borderWidth: ours ? 3 : 1.5,
    borderDash: ours ? [] : [5, 3], pointStyle: shapes[(place + Math.floor(place / palette.length)) % shapes.length],
    pointRadius: ours ? 6 : 4, pointHoverRadius: 8,
  };
}

// Returns an axis with a margin. The axis is logarithmic, but linear for values that are close
// together, because a linear axis has more ticks there.
function span(values) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return { type: most / least < 3 ? "linear" : "logarithmic", min: least / 1.1, max: most * 1.1 };
}

const axis = (title, range) => chartAxis(title, range, (value) => String(Number(value.toPrecision(3))));

const kinds = {
  calibration,
  scaling: {
    all: () => data.charts.curves.filter((c) =>
      (c.variant === "" || c.variant === byId("variant").value) && c.kind === byId("kind").value),
    title: (curve) => curve.title,
    chart(curve, is) {
      const unit = curve.title.split(", ").pop();
      const series = curve.series.map((s, i) => ({ ...s, look: look(s.contender, i) })).filter((s) => is(s.contender));
      const figures = series.flatMap((s) => s.points.map((p) => p[1]));
      return {
        type: "line",
        data: { datasets: series.map((s) => ({
          ...s.look, data: s.points.map((p) => ({ x: p[0], y: p[1], low: p[2], high: p[3] })) })) },
        options: chartOptions(axis("threads", { type: "linear" }), axis(unit, span(figures)),
          (item) => `${item.dataset.label}: ${item.raw.y} (${item.raw.low}-${item.raw.high})`),
      };
    },
    table(curve, is) {
      const series = curve.series.filter((s) => is(s.contender));
      const threads = [...new Set(series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
      const at = (s, t) => s.points.find((p) => p[0] === t)?.[1] ?? "";
      return [["contender", ...threads.map((t) => t + " threads")],
        ...series.map((s) => [s.contender, ...threads.map((t) => at(s, t))])];
    },
  },
  memory: {
    all: () => data.charts.clouds.filter((c) => c.variant === "" || c.variant === byId("variant").value),
    title: (cloud) => cloud.suite,
    chart(cloud, is) {
      const points = cloud.points.map((p, i) => [...p, look(p[0], i)]).filter((p) => is(p[0]));
      const of = (place) => span(points.map((p) => p[place]));
      return {
        type: "scatter",
        data: { datasets: points.map((p) => ({ ...p[4], data: [{ x: p[1], y: p[2] }] })) },
        options: chartOptions(axis(`time, ${cloud.of} = 1`, of(1)), axis(`peak RSS, ${cloud.of} = 1`, of(2)),
          (item) => `${item.dataset.label}: ${item.raw.x} of the time, ${item.raw.y} of the memory`),
      };
    },
    table(cloud, is) {
      return [["contender", "time", "peak RSS", "cells"], ...cloud.points.filter((p) => is(p[0]))];
    },
  },
};

function draw(box) {
  const kind = kinds[box.dataset.chart];
  const [select, canvas] = [box.querySelector("select"), box.querySelector("canvas")];
  const all = kind.all().filter((one) => String(one.machine) === machine());
  const before = select.value;
  select.replaceChildren(...all.map((one) => new Option(kind.title(one))));
  if (all.some((one) => kind.title(one) === before)) select.value = before;
  const one = all[Math.max(0, select.selectedIndex)];
  const missing = !one || !hasChartJs();
  box.querySelector(".canvas").hidden = missing;
  box.querySelector(".missing").hidden = !missing;
  box.querySelector("details").hidden = !one;
  if (one) tabulate(box.querySelector("table"), kind.table(one, wanted()));
  if (one) canvas.setAttribute("aria-label", kind.title(one));
  drawChart(canvas, missing ? undefined : kind.chart(one, wanted()));
}

function drawAll() {
  for (const box of chosen().querySelectorAll(".chart")) draw(box);
}

// --- events ----------------------------------------------------------------

for (const id of ["machine", "variant", "kind"]) {
  byId(id).addEventListener("change", () => { choose(); drawAll(); });
}
byId("machine").addEventListener("change", showVersus);
byId("peer").addEventListener("change", showVersus);
byId("filter").addEventListener("input", () => { filter(); drawAll(); });
for (const id of ["published", "ratio", "spread"]) {
  byId(id).addEventListener("change", (event) => document.body.classList.toggle(id, event.target.checked));
}
for (const box of document.querySelectorAll(".chart")) {
  box.querySelector("select").addEventListener("change", () => draw(box));
}
for (const form of document.querySelectorAll("form")) form.addEventListener("submit", (event) => event.preventDefault());
onTitle(document, sortTable);
// Following a link to a closed section opens the section.
addEventListener("hashchange", () => {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.tagName === "DETAILS") target.open = true;
});

// A browser may restore the old selection after a reload, so the page is adapted to it.
for (const id of ["published", "ratio", "spread"]) document.body.classList.toggle(id, byId(id).checked);
choose();
filter();
showVersus();
useTheme(drawAll);
drawAll();
