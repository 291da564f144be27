// Shows the table of sites, which can be sorted by any column, and searched by any function, module
// or file of a stack.

const letters = ["d", "v", "l", "u", "c", "f"];

// Returns the median lifetime of a site's freed blocks. Infinite if no block was freed.
function lifetime(site) {
  const ns = ofSite("life_p50", site);
  if (ns === null || site === sites.rest) return null;
  return ns < 0 ? Infinity : ns;
}

// Makes a column with a title, an explanation, the figure by which to sort, and a function that
// formats the figure.
function figureColumn(key, title, words, write, bar = false) {
  return { key, title, words, bar, value: (site) => ofSite(key, site), write: (value) => write(value) };
}

function measureColumn(letter) {
  const measure = measures.get(letter) ?? { name: letter.toUpperCase(), words: "" };
  return {
    key: letter, title: letter.toUpperCase(), words: `${measure.name}: ${inShort(measure.words)}`, isMeasure: true,
    value: (site) => ofMeasure(letter, site), write: figure,
  };
}

const siteColumns = [
  { key: "name", title: "site", words: "The function that allocates, and its caller.", value: (site) => siteRank(site), write: () => "" },
  figureColumn("bytes", "bytes", weights.bytes.words, bytes, true),
  figureColumn("count", "blocks", weights.count.words, count),
  figureColumn("peak", "at the peak", weights.peak.words, bytes, true),
  figureColumn("never", "never freed", weights.never.words, bytes, true),
  figureColumn("short", "short-lived", weights.short.words, count),
  figureColumn("cross", "other thread", weights.cross.words, count),
  {
    ...figureColumn("size_p50", "size", "Half of the site's blocks are at most this large.", bytes),
    value: (site) => sizeOf("size_p50", site),
  },
  {
    ...figureColumn("life_p50", "lifetime", "Half of the site's freed blocks lived at most this long.", (ns) => (ns === Infinity ? "never freed" : time(ns))),
    value: lifetime,
  },
  ...letters.map(measureColumn),
];

// Returns the rank of a site's name in alphabetical order. Ranks are computed once, because
// comparing numbers takes less time than comparing texts.
let siteRanks;
function siteRank(site) {
  if (!siteRanks) {
    const names = Array.from({ length: siteCount }, (_, i) => siteName(i).toLowerCase());
    const places = new Map([...new Set(names)].sort().map((name, place) => [name, place]));
    siteRanks = Uint32Array.from(names, (name) => places.get(name));
  }
  return siteRanks[site];
}

const siteList = { table: null, column: siteColumns[1], down: true, order: [], words: "", found: null };

// Sorts all sites by the chosen column.
function sortSites() {
  const value = siteList.column.value;
  const keys = Float64Array.from({ length: siteCount }, (_, site) => value(site) ?? NaN);
  const places = Array.from({ length: siteCount }, (_, site) => site);
  siteList.order = ordered(places, (site) => (Number.isNaN(keys[site]) ? 1 : 0),
    (a, b) => (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0), siteList.down);
}

function shownSites() {
  const { order, found } = siteList;
  const among = choice.sites && choice.site < 0 ? new Set(choice.sites) : null;
  return order.filter((site) => (!found || found[sites.node[site]] > 0) && (!among || among.has(site)));
}

function showSites() {
  const shown = shownSites();
  siteList.table.setOrder(shown);
  byId("sites-count").textContent = shown.length === siteCount
    ? plural(siteCount, "site") : `${count(shown.length)} of ${plural(siteCount, "site")}`;
  byId("sites-none").hidden = shown.length > 0;
}

// Runs an action of the reader and stores its duration in the browser's performance timeline.
function measured(name, task) {
  performance.mark(`${name}-begins`);
  task();
  performance.measure(name, `${name}-begins`);
}

function sortBy(title) {
  const column = siteColumns[Number(title.dataset.column)];
  siteList.down = column === siteList.column ? !siteList.down : column.key !== "name";
  siteList.column = column;
  markSorted(title, siteList.down);
  measured("sort", () => { sortSites(); showSites(); });
}

function searchSites(words) {
  siteList.words = words;
  measured("search", () => {
    siteList.found = words.trim() ? nodesWith(framesWith(words)) : null;
    showSites();
  });
}

// Returns the second line of a site: its source position and caller, or the function above it that
// the search found.
function siteSecondLine(site) {
  const node = siteList.found?.[sites.node[site]] ?? 0;
  const isBelow = node > 0 && node !== ownNode(site) && node !== stacks.parent[ownNode(site)];
  return isBelow ? `${framePlace(stacks.frame[ownNode(site)])} · below ${frameName(stacks.frame[node])}` : sitePlace(site);
}

function writeSite(row, site) {
  if (!row.cells.length) makeCells(row);
  row.dataset.site = site;
  row.setAttribute("aria-selected", choice.site === site);
  row.cells[0].firstChild.textContent = siteName(site);
  row.cells[0].lastChild.textContent = siteSecondLine(site);
  for (let i = 1; i < siteColumns.length; i++) writeFigure(row.cells[i], siteColumns[i], site);
}

function makeCells(row) {
  for (const [i, column] of siteColumns.entries()) {
    const cell = document.createElement(i === 0 ? "th" : "td");
    if (i === 0) {
      cell.scope = "row";
      add(cell, "b", "");
      add(cell, "small", "");
    }
    if (column.isMeasure) cell.className = "measure";
    if (column.bar) cell.className = "bar";
    cell.dataset.column = i;
    row.append(cell);
  }
}

function writeFigure(cell, column, site) {
  const value = column.value(site);
  const isThere = value !== null && !Number.isNaN(value);
  cell.textContent = isThere ? column.write(value) : column.isMeasure ? "too few" : "";
  cell.classList.toggle("few", !isThere);
  if (column.bar) cell.style.setProperty("--share", isThere && largest(column) > 0 ? value / largest(column) : 0);
}

const largestOf = new Map();
function largest(column) {
  if (!largestOf.has(column.key)) {
    let most = 0;
    for (const value of sites[column.key] ?? []) most = Math.max(most, value ?? 0);
    largestOf.set(column.key, most);
  }
  return largestOf.get(column.key);
}

// Describes a measure of a site in lines: its value, its confidence interval, and its meaning.
function measureLines(letter, site) {
  const measure = measures.get(letter) ?? { name: "measure", words: "" };
  const name = `${letter.toUpperCase()}, ${measure.name}`;
  const words = inShort(measure.words);
  const [value, low, high, n] = ["", "_lo", "_hi", "_n"].map((end) => ofMeasure(letter + end, site));
  const from = n === null ? "" : `n = ${count(n)}`;
  if (value === null) return [`${name}: too few calls to say`, from, words];
  const unit = measure.unit && measure.unit !== "ratio" ? ` ${measure.unit}` : "";
  const interval = low === null || high === null ? "" : `${figure(low)} to ${figure(high)} with 95 % confidence`;
  return [`${name}: ${figure(value)}${unit}`, [interval, from].filter(Boolean).join(", "), words];
}

// Returns the lines of the tip for a title or a cell of the table.
function siteTip(cell) {
  const column = siteColumns[Number(cell.dataset.column)];
  if (cell.closest("thead")) return [column.title, column.words];
  const site = Number(cell.parentNode.dataset.site);
  if (column.isMeasure) return measureLines(column.key, site);
  return column.key === "name" ? [siteName(site), sitePlace(site)] : null;
}

function startSites() {
  const box = byId("sites-box");
  const head = box.querySelector("thead tr");
  for (const [i, column] of siteColumns.entries()) {
    const title = add(head, "th", column.title);
    title.scope = "col";
    title.tabIndex = 0;
    title.dataset.column = i;
  }
  siteList.table = new LongTable(box, { height: 46, write: writeSite, pick: chooseSite });
  onTitle(box, sortBy);
  markSorted(head.cells[1], true);
  tipsIn(box, "thead th, tbody td.measure, tbody th", siteTip);
  byId("sites-search").addEventListener("input", (event) => searchSites(event.target.value));
  onChoice(() => {
    if (choice.site < 0) showSites();
    else siteList.table.show(true);
  });
  sortSites();
  showSites();
}
