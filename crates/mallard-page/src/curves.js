// Draws curves with Chart.js. A page without Chart.js shows tables instead.

const hasChartJs = () => typeof Chart !== "undefined";

// Returns an axis in the colours of the theme. `write` formats the figure at a tick.
function chartAxis(title, range, write) {
  const line = colour("line");
  const text = colour("text");
  return {
    ...range, title: { display: true, text: title, color: text },
    grid: { color: line, borderColor: line },
    // Without a limit, Chart.js draws more ticks on a logarithmic axis than fit.
    ticks: { color: text, autoSkip: true, maxTicksLimit: 9, maxRotation: 0, callback: (value) => write(Number(value)) },
  };
}

// Returns the options of a chart with two axes. `label` returns the tooltip of a point.
function chartOptions(x, y, label) {
  return {
    responsive: true, maintainAspectRatio: false, animation: false, scales: { x, y },
    plugins: {
      legend: { position: "bottom", labels: { color: colour("text"), usePointStyle: true, boxWidth: 10 } },
      tooltip: { callbacks: { label } },
    },
  };
}

const chartOf = new Map(); // maps a canvas to its chart

// Draws a chart in a canvas, in place of the chart that the canvas had. Clears the canvas if there
// is no `chart`.
function drawChart(canvas, chart) {
  chartOf.get(canvas)?.destroy();
  chartOf.delete(canvas);
  if (chart) chartOf.set(canvas, new Chart(canvas, chart));
}
