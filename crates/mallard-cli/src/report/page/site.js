// Shows the chosen site with its call stack and its six measures.

function stackLines(site) {
  const list = document.createElement("ol");
  list.className = "stack";
  for (const frame of framesOf(sites.node[site])) {
    const line = add(list, "li", "");
    add(line, "b", frameName(frame));
    add(line, "small", framePlace(frame));
  }
  return list;
}

function siteFacts(site) {
  const allocs = ofSite("count", site) ?? 0;
  const share = (value, whole) => (whole > 0 ? ` (${percent(value / whole)})` : "");
  const life = lifetime(site);
  const value = (key) => ofSite(key, site) ?? 0;
  return [
    `${bytes(value("bytes"))}${share(value("bytes"), totals.bytes)} in ${plural(allocs, "block")}${share(allocs, totals.allocs)}.`,
    `${bytes(value("peak"))}${share(value("peak"), totals.peak_bytes)} in use at the program's peak, ${bytes(value("never"))} never freed.`,
    sizeOf("size_p50", site) === null ? "" : `Half of the blocks are at most ${bytes(value("size_p50"))}, the largest is ${bytes(value("size_max"))}.`,
    life === null ? "" : life === Infinity ? "Most of the blocks are never freed." : `Half of the blocks live for at most ${time(life)}.`,
    value("cross") > 0 ? `${plural(value("cross"), "block")}${share(value("cross"), allocs)} are freed by another thread.` : "",
    value("call_ns") > 0 ? `The calls took ${time(value("call_ns"))}.` : "",
  ].filter(Boolean);
}

function measureList(site) {
  const list = document.createElement("dl");
  list.className = "measures";
  for (const letter of letters) {
    const row = add(list, "div", "");
    const [value, interval, words] = measureLines(letter, site);
    add(row, "dt", value);
    if (interval) add(row, "dd", interval);
    add(row, "dd", words);
  }
  return list;
}

function showSite() {
  const panel = byId("site");
  panel.hidden = choice.site < 0;
  if (choice.site < 0) return;
  byId("site-name").textContent = siteName(choice.site);
  const facts = byId("site-facts");
  facts.replaceChildren();
  for (const sentence of siteFacts(choice.site)) write(add(facts, "p", ""), sentence);
  byId("site-stack").replaceChildren(stackLines(choice.site));
  byId("site-measures").replaceChildren(measureList(choice.site));
}

function startSite() {
  onChoice(showSite);
}
