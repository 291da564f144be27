// Draws the cards of the advice: what to change, where, what the change saves, and how to check it.

const advice = data.advice ?? null;
const cards = advice?.cards ?? [];

const languages = [["cpp_mallard", "C++ with Mallard"], ["cpp_pmr", "C++ with std::pmr"], ["c", "C with Mallard"], ["rust", "Rust"]];
const verdictWords = {
  change: "Something to change", leave: "Nothing to change", undecided: "Not decided", forced: "Replayed as requested",
};

// Returns the source position of a region or a site, such as render.cpp:40.
function cardPlace(card) {
  const of = card.region ?? card.site;
  if (!of) return "";
  const file = of.file ? (of.line >= 0 ? `${of.file}:${of.line}` : of.file) : baseName(of.module ?? "");
  return file ? `${of.shown} (${file})` : of.shown ?? "";
}

// Returns the line of the matrix that belongs to a card.
function rowOf(card) {
  const name = card.allocator ?? card.strategy;
  return changes.find((row) => row.name === name && (row.region ?? "") === (card.region?.shown ?? "") && !row.dropped);
}

// Returns what mallard verify measured after the advice of a card was followed.
function verifiedOf(card) {
  return advice.verified?.card === card.title ? advice.verified : null;
}

// The actions that change an allocator, and therefore save something.
const changing = ["convert", "pool", "switch", "set"];

// Returns the lines of the saving, each with a title, an interval, and words.
function savingLines(card) {
  if (!changing.includes(card.action)) return [];
  const saving = card.saving ?? {};
  const by = measuredWords[saving.measured_by] ?? "";
  const predicted = rowOf(card)?.predicted;
  const lines = [];
  if (predicted) lines.push(["predicted before", { ...predicted, saving: null }, `${range(predicted)}, by replay of the recording`, "soft"]);
  if (saving.total) lines.push([predicted ? "measured" : "CPU time saved", saving.total, `${interval(saving.total)}, ${by}`, "whole"]);
  if (saving.allocator) lines.push(["work of the allocator", saving.allocator, interval(saving.allocator)]);
  if (saving.pages) lines.push(["work on pages", saving.pages, interval(saving.pages)]);
  if (saving.locality) lines.push(["locality", saving.locality, interval(saving.locality)]);
  else if (saving.total) lines.push(["locality", null, saving.measured_by === "try" ? "is in the total" : "is not estimated"]);
  if (saving.expected && saving.measured_by !== "try") {
    lines.push(["likely in the program", { ...saving.expected, saving: null }, `${range(saving.expected)}, locality included`, "soft"]);
  }
  const verified = verifiedOf(card)?.cpu;
  if (verified) lines.push(["the change measured", verified, `${interval(verified)}, by mallard verify`, "whole"]);
  return lines;
}

// Draws intervals on one scale, with a line at zero. Words next to each interval have the same
// content.
function addSavings(parent, lines) {
  const parts = lines.map(([, part]) => part).filter((part) => Number.isFinite(part?.low) && Number.isFinite(part?.high));
  const least = Math.min(0, ...parts.map((part) => part.low));
  const most = Math.max(0.01, ...parts.map((part) => part.high));
  const at = (share) => `${(100 * (share - least)) / (most - least)}%`;
  const list = add(parent, "dl", "", "savings");
  for (const [name, part, said, kind] of lines) {
    const row = add(list, "div", "", kind);
    add(row, "dt", name);
    const cell = add(row, "dd", "");
    if (parts.includes(part)) {
      const bar = add(cell, "span", "", "interval");
      bar.setAttribute("aria-hidden", "true");
      bar.style.setProperty("--zero", at(0));
      bar.style.setProperty("--low", at(part.low));
      bar.style.setProperty("--high", at(part.high));
      if (Number.isFinite(part.saving)) add(bar, "i", "").style.left = at(part.saving);
    }
    write(add(cell, "span", ""), said);
  }
}

function memoryWords(card) {
  const of = card.memory;
  if (!of) return "";
  const what = (of.measured_by ?? card.saving?.measured_by) === "try" ? "resident" : "of the heap";
  const isChange = of.verdict === "gain" || of.verdict === "loss";
  const change = isChange ? `, saved: ${interval(of)}` : "";
  return `${bytes(of.after_bytes)} ${what} at most instead of ${bytes(of.before_bytes)}: ${of.verdict}${change}`;
}

function verifiedMemory(card) {
  const of = verifiedOf(card);
  if (!of?.memory || !of.peak_rss_bytes) return "";
  const [before, after] = of.peak_rss_bytes;
  return `${bytes(after)} resident at most instead of ${bytes(before)}: ${of.memory.verdict}`;
}

function addFacts(parent, facts) {
  const list = add(parent, "dl", "", "card-facts");
  for (const [name, said] of facts.filter(([, words]) => words)) {
    const row = add(list, "div", "");
    add(row, "dt", name);
    const words = add(row, "dd", "");
    if (name === "where") words.textContent = said;
    else write(words, said);
  }
}

function addList(parent, title, lines, name) {
  if (listOf(lines).length === 0) return;
  add(parent, "h4", title);
  const list = add(parent, "ul", "", name);
  for (const line of lines) write(add(list, "li", ""), line);
}

function addCommand(parent, title, command) {
  if (!command) return;
  add(parent, "h4", title);
  const box = add(parent, "pre", "");
  box.tabIndex = 0;
  add(box, "code", command);
}

// Returns the language of the function in which the change is made.
function ownLanguage(card) {
  const known = { cpp: "cpp_mallard", c: "c", rust: "rust" }[card.language];
  if (known) return known;
  const file = (card.region ?? card.site)?.file ?? "";
  if (file.endsWith(".rs")) return "rust";
  return file.endsWith(".c") ? "c" : "cpp_mallard";
}

// Adds the code of a card in a language that the reader chooses. For a program in C, only C is
// offered.
function addCode(parent, card, number) {
  const own = ownLanguage(card);
  const known = languages.filter(([key]) => card.code?.[key] && (own !== "c" || key === "c"));
  if (known.length === 0) return;
  add(parent, "h4", "The code");
  add(parent, "p", "An example of the change, to adapt.");
  const choices = add(parent, "fieldset", "", "choices");
  add(choices, "legend", "Language of the code", "unseen");
  const box = document.createElement("pre");
  box.tabIndex = 0;
  const code = add(box, "code", "");
  const first = known.find(([key]) => key === own) ?? known[0];
  for (const [key, words] of known) {
    const label = add(choices, "label", "");
    const radio = add(label, "input", "");
    Object.assign(radio, { type: "radio", name: `language-${number}`, value: key, checked: key === first[0] });
    add(label, "span", words);
    radio.addEventListener("change", () => { code.textContent = card.code[key]; });
  }
  code.textContent = card.code[first[0]];
  parent.append(box);
}

function addPlan(parent, card) {
  if (!card.plan) return;
  const details = add(parent, "details", "", "plan");
  add(details, "summary", "The plan, for mallard replay --plan");
  const box = add(details, "pre", "");
  box.tabIndex = 0;
  add(box, "code", card.plan);
}

// Adds a link to the instances of the region of a card.
function addInstances(parent, card) {
  const place = card.region ? regions.findIndex((of) => of.name === card.region.shown && of.ends === card.region.ends) : -1;
  if (place < 0) return;
  const link = add(add(parent, "p", ""), "a", "Show the instances of this function over time");
  link.href = "#lanes";
  link.addEventListener("click", () => showRegion(place));
}

function skipped(card) {
  if (!(card.destructors_skipped > 0)) return "";
  const most = card.freed_by?.length ? `; most blocks are freed in ${card.freed_by.join(", ")}` : "";
  const destructors = ownLanguage(card) === "c" ? "" : ", and at most as many destructors,";
  return `${count(card.destructors_skipped)} frees${destructors} in the recorded run${most}`;
}

function addCard(card, number) {
  const box = add(byId("cards"), "details", "", "card");
  box.open = number === 0;
  const summary = add(box, "summary", "");
  add(summary, "h3", card.title ?? "");
  if (card.strategy) add(summary, "span", card.strategy, "badge");
  if (card.sentence && number > 0) write(add(box, "p", "", "sentence"), card.sentence);
  addFacts(box, [["where", cardPlace(card)], ["what", card.strategy_words], ["memory", memoryWords(card)], ["memory measured", verifiedMemory(card)],
    ["skips", skipped(card)]]);
  const lines = savingLines(card);
  if (lines.length > 0) addSavings(box, lines);
  const two = add(box, "div", "", "two");
  const [why, how] = [add(two, "div", ""), add(two, "div", "")];
  addList(why, "Because", card.evidence, "because");
  addList(why, "Beware", card.hazards, "beware");
  addList(why, "Why not another", card.why_not, "why-not");
  addInstances(why, card);
  addCode(how, card, number);
  addCommand(how, "How", card.how);
  addCommand(how, "How to check it afterwards", card.check);
  addPlan(how, card);
}

// Shows the result of a strategy that the user has requested.
function addWish(forced) {
  if (!forced) return;
  const box = byId("wish");
  box.hidden = false;
  const blocks = plural(forced.dangling ?? 0, "block");
  write(box, forced.dangling > 0
    ? `A program with ${forced.name} would be incorrect: ${blocks} would be used after they are freed.`
    : `With ${forced.name}, no block would be used after it is freed in the recorded run.`);
  for (const site of listOf(forced.sites)) write(add(box, "p", ""), `${plural(site.blocks, "block")}, ${bytes(site.bytes)}, of ${site.function}`);
  const rest = forced.dangling - listOf(forced.sites).reduce((sum, site) => sum + site.blocks, 0);
  if (rest > 0 && forced.sites?.length) write(add(box, "p", ""), `and ${plural(rest, "more block")} of other functions`);
}

// Returns notes about what limits the advice: time, the machine, and the recording.
function adviceNotes() {
  const took = advice.took_s > 0 ? `The advice took ${time(advice.took_s * 1e9)} of a budget of ${time((advice.budget_s ?? 0) * 1e9)}.` : "";
  return [
    took,
    advice.min_gain > 0 ? `Savings below ${percent(advice.min_gain)} do not count.` : "",
    advice.interrupted ? "The measurement was interrupted." : "",
    advice.noisy ? "This machine is too noisy: two measurements of the unchanged program differ by as much as the smallest saving that counts." : "",
    ...listOf(advice.undecided).map((what) => `Undecided: ${what}.`), ...listOf(advice.validity), ...listOf(advice.notes),
  ].filter(Boolean);
}

function startAdvice() {
  byId("no-advice").hidden = advice !== null;
  byId("advice-command").textContent = `mallard advise ${data.name || "NAME"}`;
  byId("advice-all").hidden = advice === null;
  if (advice === null) return;
  byId("verdict").textContent = verdictWords[advice.verdict] ?? advice.verdict ?? "";
  byId("verdict").dataset.verdict = advice.verdict ?? "";
  write(byId("advice-sentence"), advice.sentence ?? "");
  addWish(advice.forced);
  for (const [number, card] of cards.entries()) addCard(card, number);
  for (const note of adviceNotes()) write(add(byId("advice-notes"), "li", ""), note);
}
