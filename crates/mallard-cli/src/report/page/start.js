// Starts the page. The first screen is drawn first, and then one plot at a time, so that the page
// responds in between.

const startPlots = [startTime, startIcicle, startHeat, startFrees, startMap, startMatrix, startLanes];

function drawNext(waiting) {
  const one = waiting.shift();
  if (!one) return performance.mark("complete");
  one.draw();
  setTimeout(drawNext, 0, waiting);
}

function start() {
  startHead();
  startAdvice();
  startChoice();
  startSites();
  startSite();
  startMethod();
  for (const startPlot of startPlots) startPlot();
  onChoice(drawPlots);
  useTheme(drawPlots);
  onTitle(document.querySelector("main"), (title) => {
    if (title.closest(".figures, #method")) sortTable(title);
  });
  performance.mark("interactive");
  setTimeout(drawNext, 0, [...plots]);
}

start();
