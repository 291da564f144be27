// Reads the data of the report, which the command computed. Missing data become empty columns, so
// that plots need no checks.

const data = JSON.parse(byId("data").textContent);
data.strings ??= [];
const frames = { func: [], module: [], file: [], line: [], passes: [], ...data.frames };
const stacks = { up: [], frame: [], ...data.stacks };
// The data contain the distance from a node to its parent, because small numbers keep the file
// small.
stacks.parent = Uint32Array.from(stacks.up, (up, node) => Math.max(0, node - up));
const sites = { node: [], measured: [], rest: -1, ...data.sites };
const siteCount = sites.node.length;
const totals = { allocs: 0, bytes: 0, frees: 0, peak_bytes: 0, live_bytes: 0, live_allocs: 0, ...data.totals };

// The six measures by their letters, with explanations.
const measures = new Map((data.measures ?? []).map((measure) => [measure.key, measure]));

// Returns the first two sentences of the explanation of a measure. The section on the method has
// the whole explanation.
function inShort(words) {
  return words.split(/(?<=\.) (?=[A-Z0-9]|n counts)/).slice(0, 2).join(" ");
}

// The weights by which sites and stacks are compared.
const weights = {
  bytes: { title: "bytes", write: bytes, words: "Bytes allocated in the whole run, freed or not." },
  count: { title: "blocks", write: count, words: "Blocks allocated in the whole run." },
  peak: { title: "at the peak", write: bytes, words: "Bytes in use at the peak of the program." },
  short: { title: "short-lived", write: count, words: "Blocks freed before their thread allocated the next block." },
  never: { title: "never freed", write: bytes, words: "Bytes still in use when the program ended." },
  cross: { title: "other thread", write: count, words: "Blocks freed by another thread than the one that allocated them." },
};

const text = (place) => data.strings[place] ?? "";
const baseName = (path) => path.slice(path.lastIndexOf("/") + 1);

// Returns a figure of a site, or null. `sizeOf` also returns null for a figure below zero, which
// means unknown.
const ofSite = (key, site) => sites[key]?.[site] ?? null;
const sizeOf = (key, site) => (ofSite(key, site) >= 0 ? ofSite(key, site) : null);

// Returns a measure of a site, or null, because only sites with enough calls have measures.
const measuredAt = new Map(sites.measured.map((site, place) => [site, place]));
const ofMeasure = (key, site) => sites[key]?.[measuredAt.get(site)] ?? null;

// Returns a name for a frame: its function, or its module if the program has no symbols.
function frameName(frame) {
  const func = text(frames.func[frame]);
  if (func) return func;
  const module = baseName(text(frames.module[frame]));
  return module ? `(no name, in ${module})` : "(unknown)";
}

// Returns the source position of a frame, such as parser.cpp:120, or else its module.
function framePlace(frame) {
  const file = baseName(text(frames.file[frame]));
  const line = frames.line[frame];
  if (file) return line >= 0 ? `${file}:${line}` : file;
  return baseName(text(frames.module[frame]));
}

// Returns the frames of a node, innermost first.
function framesOf(node) {
  const all = [];
  for (let at = node; at > 0; at = stacks.parent[at]) all.push(stacks.frame[at]);
  return all;
}

// Returns the node of a site without the innermost functions that only pass the allocation on, such
// as operator new.
function ownNode(site) {
  const node = sites.node[site];
  for (let at = node; at > 0; at = stacks.parent[at]) {
    if (!frames.passes[stacks.frame[at]]) return at;
  }
  return node;
}

function siteName(site) {
  const node = ownNode(site);
  if (node > 0) return frameName(stacks.frame[node]);
  return site === sites.rest ? "all smaller sites" : "(no call stack)";
}

// Returns the source position of a site, and the caller of the site's function.
function sitePlace(site) {
  const node = ownNode(site);
  if (!(node > 0)) return "";
  const caller = stacks.parent[node];
  const place = framePlace(stacks.frame[node]);
  return caller > 0 ? `${place} · from ${frameName(stacks.frame[caller])}` : place;
}

// A search finds a frame if its function, module or file contains the words. `lowered` has all
// strings in lower case.
let lowered;
function framesWith(words) {
  lowered ??= data.strings.map((string) => string.toLowerCase());
  const needle = words.trim().toLowerCase();
  const hit = Uint8Array.from(lowered, (string) => (string.includes(needle) ? 1 : 0));
  const is = (place) => place >= 0 && hit[place] === 1;
  return Uint8Array.from(frames.func, (func, i) =>
    (is(func) || is(frames.module[i]) || is(frames.file[i]) ? 1 : 0));
}

// Returns for each node the node itself if the search found its frame, or else the nearest such
// ancestor; 0 if there is none.
function nodesWith(foundFrames) {
  const found = new Uint32Array(stacks.parent.length);
  for (let node = 1; node < found.length; node++) {
    found[node] = foundFrames[stacks.frame[node]] ? node : found[stacks.parent[node]];
  }
  return found;
}
