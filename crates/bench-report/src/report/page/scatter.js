// Draws a chart that compares predictions by replays with measurements, with a point for each pair
// of a program and a malloc. A vertical line at each point shows the interval that the replay
// predicts for the program. If the diagonal crosses this line, the prediction is right.

// Returns a linear axis with a margin of a twentieth on each side.
function linear(values) {
  const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
  const margin = (most - least || 1) / 20;
  return { type: "linear", min: least - margin, max: most + margin };
}

// Returns a series of lines without points.
function lines(label, data, more) {
  return { type: "line", label, data, pointRadius: 0, pointHitRadius: 0, borderColor: colour("text"),
    backgroundColor: colour("text"), borderWidth: 1, ...more };
}

function scatterSeries(points) {
  const names = [...new Set(points.map((p) => p.contender))];
  return (is) => names.map((name, i) => ({
    ...look(name, i), showLine: false,
    data: points.filter((p) => p.contender === name).map((p) => ({ ...p, x: p.real, y: p.replayed })),
  })).filter((series) => is(series.label));
}

function scatterChart(scatter, is) {
  const points = scatter.points.filter((p) => is(p.contender));
  const reals = linear(points.map((p) => p.real));
  const replayed = linear(points.flatMap((p) => [p.replayed, ...(p.predicted ?? [])]));
  const ends = [Math.max(reals.min, replayed.min), Math.min(reals.max, replayed.max)];
  const intervals = points.filter((p) => p.predicted).flatMap((p) =>
    [{ x: p.real, y: p.predicted[0] }, { x: p.real, y: p.predicted[1] }, { x: p.real, y: NaN }]);
  const all = [...scatterSeries(scatter.points)(is),
    lines("replay and measurement agree", ends.map((end) => ({ x: end, y: end })), { borderDash: [6, 4] })];
  if (intervals.length > 0) all.push(lines("predicted interval", intervals, { borderWidth: 1.5, spanGaps: false }));
  return {
    type: "scatter", data: { datasets: all },
    options: chartOptions(axis(`measured saving, ${scatter.unit}`, reals), axis(`saving in the replay, ${scatter.unit}`, replayed),
      (item) => `${item.raw.program} under ${item.dataset.label}: ${item.raw.x} measured, ${item.raw.y} in the replay`),
  };
}

function scatterTable(scatter, is) {
  const interval = (p) => (p.predicted ? `${p.predicted[0]} to ${p.predicted[1]}` : "");
  return [["program", "malloc", `measured saving, ${scatter.unit}`, "verdict", `replay, ${scatter.unit}`, "predicted"],
    ...scatter.points.filter((p) => is(p.contender)).map((p) =>
      [p.program, p.contender, p.real, p.verdict, p.replayed, interval(p)])];
}

// A kind of chart, in the form that page.js draws.
const calibration = {
  all: () => data.charts.scatters,
  title: (scatter) => scatter.title,
  chart: scatterChart,
  table: scatterTable,
};
