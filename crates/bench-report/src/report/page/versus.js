// The first screen, which compares Mallard's malloc with another malloc, on the machine that the
// reader chose.

const times = (factor) => factor.toFixed(2);
const onMachine = () => data.versus.find((one) => String(one.machine) === machine());
const againstPeer = (one) => one.against.find((other) => other.name === byId("peer").value);

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Returns a group of bars under a title. Each entry of `bars` has a name, a factor, and a CSS
// class. The mark in each bar shows where the factor would be 1.
function barGroup(title, bars) {
  const group = element("div", "bars");
  const most = Math.max(1, ...bars.map((bar) => bar.factor));
  group.style.setProperty("--one", `${100 / most}%`);
  group.append(element("h4", "", title));
  for (const { name, factor, kind } of bars) {
    const line = element("div", "line " + kind);
    const track = element("span", "track");
    const bar = element("span", "bar");
    bar.style.width = `${(100 * factor) / most}%`;
    track.append(bar);
    line.append(element("span", "name", name), track, element("span", "factor", times(factor)));
    group.append(line);
  }
  return group;
}

// Returns the bars of all mallocs on a machine, with a group for each part.
function allMallocs(one) {
  const titles = data.parts;
  return titles.flatMap((title, place) => {
    const bars = one.all.filter((malloc) => malloc.figures[place] !== null)
      .map((malloc) => ({ name: malloc.name, factor: malloc.figures[place], kind: malloc.ours ? "ours" : "" }))
      .sort((a, b) => a.factor - b.factor);
    return bars.length > 1 ? [barGroup(`${title} (glibc = 1)`, bars)] : [];
  });
}

const kindOf = { 1: "won", 0: "tied", "-1": "lost" };

// Returns the bars of Mallard compared with one malloc. A part with few cases shows all of them;
// other parts show only the losses.
function casesAgainst(against) {
  return against.parts.filter((part) => part.cases.length > 0).map((part) => {
    const bars = part.cases.map(([name, factor, won]) => ({ name, factor, kind: kindOf[won] }));
    const listed = part.whole ? "" : part.lost > part.cases.length ? `, the ${part.cases.length} largest losses` : ", where Mallard loses";
    return barGroup(`${part.title}${listed} (${against.name} = 1)`, bars);
  });
}

// Returns a table of all parts on every machine: the mean, and the numbers of cases that Mallard
// won, tied and lost.
function everyMachine(peer) {
  const machines = data.versus.filter((one) => one.against.some((other) => other.name === peer));
  const line = (title) => [title, ...machines.map((one) => {
    const part = one.against.find((other) => other.name === peer).parts.find((p) => p.title === title);
    return part ? [`${times(part.mean)} (${part.won} / ${part.tied} / ${part.lost})`, part.mean] : "";
  })];
  const table = element("table");
  tabulate(table, [["Mallard needs (won / tied / lost)", ...machines.map((one) => one.name)], ...data.parts.map(line)]);
  const box = element("div", "scroll");
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", `Mallard against ${peer} on every machine`);
  box.append(table);
  return box;
}

// Returns the comparison in a sentence.
function sentenceAgainst(one, against) {
  const part = (title) => against.parts.find((p) => p.title === title);
  const [time, memory, calls] = data.parts.map(part);
  const counted = (p) => `${p.won} won, ${p.tied} within noise, ${p.lost} lost`;
  const said = [];
  if (time) said.push(`whole programs with Mallard need ${times(time.mean)} times the CPU time that they need with ${against.name} (${counted(time)})`);
  if (memory) said.push(`${times(memory.mean)} times the peak memory (${counted(memory)})`);
  if (calls) said.push(`a call of malloc or free alone needs ${times(calls.mean)} times the time (${counted(calls)})`);
  return said.length ? `On ${one.name}, ${said.join("; ")}.` : `On ${one.name}, nothing was measured under both.`;
}

function sentenceOfAll(one) {
  const words = ["times glibc's CPU time in whole programs", "times the peak memory of programs", "times the time of a call of malloc or free"];
  const parts = words.map((word, place) => {
    const all = one.all.filter((malloc) => malloc.figures[place] !== null);
    const ours = all.find((malloc) => malloc.ours);
    if (!ours) return "";
    const less = all.filter((malloc) => times(malloc.figures[place]) < times(ours.figures[place])).map((malloc) => malloc.name);
    return `${times(ours.figures[place])} ${word} (${less.length === 0 ? "no malloc needs less" : `less: ${less.join(", ")}`})`;
  }).filter(Boolean);
  return parts.length ? `On ${one.name}, Mallard needs ${parts.join(", ")}.` : `On ${one.name}, Mallard's malloc was not compared with glibc's.`;
}

// Fills the selector with the mallocs of the chosen machine. Keeps the selected malloc if the
// machine has it.
function offerPeers(one) {
  const select = byId("peer");
  const before = select.value;
  const names = one ? one.against.map((other) => other.name) : [];
  select.replaceChildren(new Option("every malloc", ""), ...names.map((name) => new Option(name)));
  select.value = names.includes(before) ? before : "";
}

function showVersus() {
  const one = onMachine();
  offerPeers(one);
  const against = one && againstPeer(one);
  const missing = "No malloc was measured on this machine: another machine above has figures.";
  byId("said").textContent = !one ? missing : against ? sentenceAgainst(one, against) : sentenceOfAll(one);
  const groups = !one ? [] : against ? [everyMachine(against.name), ...casesAgainst(against)] : allMallocs(one);
  byId("versus-bars").replaceChildren(...groups);
}
