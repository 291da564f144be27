// Draws the first screen: the program, four sentences, the bound on savings, and the most important
// figures.

// Writes a sentence into an element. Figures with their units are bold, except digits in names.
// Text in backquotes becomes code.
function write(element, sentence) {
  const parts = sentence.split(/(`[^`]*`|(?<![\w:.-])-?\d+(?:[.,]\d+)*(?: (?:[KMGT]iB|B|%|ns|µs|us|ms|s|min|million|billion)(?![a-z]))?)/);
  for (const [i, part] of parts.entries()) {
    if (i % 2 === 0) {
      element.append(part);
      continue;
    }
    const isCode = part.startsWith("`");
    const child = document.createElement(isCode ? "code" : "strong");
    child.textContent = isCode ? part.slice(1, -1) : part;
    element.append(child);
  }
}

function add(parent, tag, words, name) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.textContent = words;
  parent.append(element);
  return element;
}

// Shows a long command in one line. A click shows the whole command.
function showCommand(program) {
  const command = byId("command");
  command.textContent = program.command || data.name || "a program";
  const more = byId("command-more");
  more.hidden = command.scrollHeight <= command.clientHeight + 4;
  more.addEventListener("click", () => {
    const isWhole = command.classList.toggle("whole");
    more.setAttribute("aria-expanded", isWhole);
    more.textContent = isWhole ? "less" : "whole command";
  });
}

function runFacts(program) {
  const started = program.started ? new Date(program.started) : null;
  return [
    started && !Number.isNaN(started.getTime()) ? `recorded ${started.toISOString().slice(0, 16).replace("T", " ")} UTC` : "",
    program.duration_ns > 0 ? `ran ${time(program.duration_ns)}` : "",
    program.status !== undefined && program.status !== "" ? `ended with status ${program.status}`.replace("status signal", "signal") : "",
    program.threads > 0 ? plural(program.threads, "thread") : "",
    program.processes > 1 ? `${program.processes} processes` : "",
  ].filter(Boolean);
}

// Draws the most important figures, each with its description below.
function keyFigures() {
  const cards = [
    [bytes(totals.peak_bytes), "in use at the peak"],
    [totals.peak_rss > 0 ? bytes(totals.peak_rss) : "", "peak resident memory, without the recorder"],
    [bytes(totals.bytes), "allocated in all"],
    [roughly(totals.allocs), "blocks allocated"],
    [bytes(totals.live_bytes), "never freed"],
  ];
  return cards.filter(([figure]) => figure !== "");
}

function startHead() {
  const program = data.program ?? {};
  byId("name").textContent = data.name || "this program";
  showCommand(program);
  byId("run").textContent = runFacts(program).join(" · ");
  for (const sentence of data.sentences ?? []) write(add(byId("sentences"), "p", ""), sentence);
  const bound = byId("bound");
  bound.hidden = !data.bound;
  if (data.bound) write(bound, data.bound);
  for (const [figure, words] of keyFigures()) {
    const card = add(byId("figures"), "div", "");
    add(card, "dt", words);
    add(card, "dd", figure);
  }
  byId("empty").hidden = totals.allocs > 0 || siteCount > 0;
}
