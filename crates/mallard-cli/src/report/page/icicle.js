// Draws the icicle of call stacks, with callers above and callees below. The width of a frame is
// its share of a weight.

const ROW = 24; // height of a frame
const LEAST = 1.2; // minimum width of a drawn frame

const icicle = { tree: null, weight: "bytes", root: 0, cursor: -1, boxes: [], found: null, words: "" };

const icicleCanvas = () => byId("icicle").querySelector("canvas");

// Computes the boxes of all frames that are wide enough to draw: [node, left, width, row].
function icicleBoxes(width) {
  const { tree, weight, root } = icicle;
  const { all } = tree.totals(weight);
  const boxes = [];
  const open = [[root, 0, width, 0]];
  while (open.length) {
    const box = open.pop();
    boxes.push(box);
    const [node, left, room, row] = box;
    const inside = [];
    let at = left;
    for (const child of tree.below(node, weight)) {
      const own = all[node] > 0 ? (room * all[child]) / all[node] : 0;
      if (own < LEAST) break; // All further frames are narrower.
      inside.push([child, at, own, row + 1]);
      at += own;
    }
    open.push(...inside.reverse()); // The first frame must be popped next.
  }
  return boxes;
}

// Maps the six modules with the most blocks to a different colour each. All other modules share one
// colour.
let moduleInks;
function moduleColours() {
  if (moduleInks) return moduleInks;
  const { tree } = icicle;
  const { all } = tree.totals("count");
  const sums = new Map();
  for (let node = 1; node < all.length; node++) {
    const module = frames.module[tree.frame[node]];
    sums.set(module, (sums.get(module) ?? 0) + all[node]);
  }
  const most = [...sums].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([module]) => module);
  moduleInks = new Map(most.map((module, i) => [module, `module-${i}`]));
  return moduleInks;
}

const inkOfNode = (node) => (node === 0 ? "module-none" : moduleColours().get(frames.module[icicle.tree.frame[node]]) ?? "module-none");

function drawBox(context, [node, left, width, row], isDimmed) {
  const top = row * ROW;
  context.globalAlpha = isDimmed ? 0.25 : 1;
  context.fillStyle = ink(inkOfNode(node));
  context.fillRect(left + 0.5, top + 0.5, Math.max(0.7, width - 1), ROW - 1);
  if (width > 28) {
    context.fillStyle = ink("module-text");
    context.fillText(cut(context, icicle.tree.name(node), width - 12), left + 6, top + ROW / 2 + 0.5);
  }
  context.globalAlpha = 1;
}

function frameBox(context, [, left, width, row], name) {
  context.strokeStyle = ink(name);
  context.lineWidth = 2;
  context.strokeRect(left + 1, row * ROW + 1, Math.max(1, width - 2), ROW - 2);
}

function drawIcicle() {
  icicle.tree ??= new Tree();
  const canvas = icicleCanvas();
  const width = canvas.parentNode.clientWidth;
  icicle.boxes = icicleBoxes(width);
  const rows = icicle.boxes.reduce((most, box) => Math.max(most, box[3] + 1), 1);
  const context = clean(canvas, width, rows * ROW);
  const chosen = choice.site >= 0 ? icicle.tree.merged[sites.node[choice.site]] : -1;
  const onPath = chosen >= 0 ? new Set(icicle.tree.path(chosen)) : null;
  for (const box of icicle.boxes) {
    const isFound = icicle.found ? icicle.found[box[0]] === 1 : true;
    drawBox(context, box, !isFound || (onPath !== null && !onPath.has(box[0])));
    if (icicle.found && isFound) frameBox(context, box, "text");
    if (box[0] === chosen) frameBox(context, box, "chosen");
    if (box[0] === icicle.cursor) frameBox(context, box, "link");
  }
  drawCrumbs();
  drawModules();
}

// --- words -------------------------------------------------------------------

function nodeLines(node) {
  const { tree, weight } = icicle;
  const { all, own } = tree.totals(weight);
  const { title, write } = weights[weight];
  const share = all[0] > 0 ? all[node] / all[0] : 0;
  const place = node === 0 ? "" : framePlace(tree.frame[node]);
  const itself = own[node] > 0 && own[node] < all[node] ? `, ${write(own[node])} by itself` : "";
  return [tree.name(node), place, `${title}: ${write(all[node])}, ${percent(share)} of the program${itself}`];
}

function drawCrumbs() {
  const path = icicle.tree.path(icicle.root);
  const shown = path.length > 6 ? [path[0], -1, ...path.slice(-4)] : path;
  byId("crumbs").replaceChildren(...shown.map((node) => {
    const item = document.createElement("li");
    if (node < 0) {
      item.textContent = "…";
      return item;
    }
    const button = add(item, "button", icicle.tree.name(node));
    button.type = "button";
    button.disabled = node === icicle.root;
    if (node === icicle.root) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => zoomTo(node));
    return item;
  }));
  byId("only").hidden = icicle.root === 0;
}

function drawModules() {
  byId("modules").replaceChildren(...[...moduleColours()].map(([module, name]) => {
    const item = document.createElement("li");
    item.textContent = baseName(text(module)) || "(unknown)";
    item.style.setProperty("--swatch", `var(--${name})`);
    return item;
  }));
}

function sayNode(node) {
  byId("icicle-said").textContent = node < 0 ? "" : nodeLines(node).filter(Boolean).join(" · ");
}

// --- actions -----------------------------------------------------------------

function zoomTo(node) {
  measured("zoom", () => {
    icicle.root = node;
    icicle.cursor = node;
    drawIcicle();
    icicleDetails();
    sayNode(node);
  });
  icicleCanvas().parentNode.scrollTop = 0;
}

// Zooms to a frame. If the icicle ends there, also chooses the sites whose call stacks end at the
// frame.
function enter(node) {
  zoomTo(node);
  const here = [];
  if (icicle.tree.totals("count").own[node] > 0 && icicle.tree.below(node, icicle.weight).length === 0) {
    for (let site = 0; site < siteCount; site++) if (icicle.tree.merged[sites.node[site]] === node) here.push(site);
  }
  if (here.length === 1 && choice.site !== here[0]) chooseSite(here[0]);
  else if (here.length > 1) choose(here, icicle.tree.name(node));
}

function setWeight(weight) {
  icicle.weight = weight;
  measured("weight", () => {
    drawIcicle();
    icicleDetails();
    sayFound();
  });
  byId("weight-words").textContent = weights[weight].words;
}

function searchIcicle(words) {
  icicle.words = words;
  icicle.found = null;
  if (words.trim()) {
    const found = framesWith(words);
    icicle.found = Uint8Array.from(icicle.tree.frame, (frame) => (frame >= 0 && found[frame] ? 1 : 0));
  }
  drawIcicle();
  sayFound();
}

// Shows the total of the found frames. A call stack counts once, even if several of its frames are
// found.
function sayFound() {
  const said = byId("icicle-found");
  said.textContent = "";
  if (!icicle.found) return;
  const { all } = icicle.tree.totals(icicle.weight);
  const inside = icicle.found.slice();
  let sum = 0;
  for (let node = 1; node < inside.length; node++) {
    if (inside[icicle.tree.parent[node]]) inside[node] = 1;
    else if (inside[node]) sum += all[node];
  }
  said.textContent = `Found in ${percent(all[0] > 0 ? sum / all[0] : 0)} of ${weights[icicle.weight].title}.`;
}

// Returns the frame to which an arrow key moves the cursor.
function nextNode(key) {
  const { tree, weight, root } = icicle;
  const node = icicle.cursor < 0 ? root : icicle.cursor;
  const siblings = node === root ? [root] : [...tree.below(tree.parent[node], weight)];
  const at = siblings.indexOf(node);
  if (key === "ArrowDown") return tree.below(node, weight)[0] ?? node;
  if (key === "ArrowUp") return node === root ? node : tree.parent[node];
  return siblings[key === "ArrowLeft" ? at - 1 : at + 1] ?? node;
}

function moveCursor(key) {
  icicle.cursor = nextNode(key);
  drawIcicle();
  sayNode(icicle.cursor);
  const box = icicle.boxes.find(([node]) => node === icicle.cursor);
  const view = icicleCanvas().parentNode;
  if (!box) return;
  if (box[3] * ROW < view.scrollTop) view.scrollTop = box[3] * ROW;
  else if ((box[3] + 1) * ROW > view.scrollTop + view.clientHeight) view.scrollTop = (box[3] + 1) * ROW - view.clientHeight;
}

function icicleKey(event) {
  if (event.key.startsWith("Arrow")) moveCursor(event.key);
  else if (event.key === "Enter") enter(icicle.cursor < 0 ? icicle.root : icicle.cursor);
  else if (event.key === "Home") zoomTo(0);
  else if ((event.key === "Escape" || event.key === "Backspace") && icicle.root > 0) zoomTo(icicle.tree.parent[icicle.root]);
  else return;
  event.preventDefault();
}

function nodeUnder(event) {
  const [x, y] = placeIn(icicleCanvas(), event);
  const row = Math.floor(y / ROW);
  return icicle.boxes.find((box) => box[3] === row && x >= box[1] && x < box[1] + box[2])?.[0] ?? -1;
}

// --- the table, and the start ------------------------------------------------

let icicleDetails = () => {};

// Returns the table's lines, which are the frames with the largest weights, in the order of the
// icicle.
function icicleLines() {
  const { tree, weight, root } = icicle;
  const { all, own } = tree.totals(weight);
  const { title, write } = weights[weight];
  const most = icicle.boxes.map(([node]) => node).sort((a, b) => all[b] - all[a]).slice(0, 200);
  const shown = new Set(most);
  const inOrder = icicle.boxes.map(([node]) => node).filter((node) => shown.has(node));
  return [["function", "where", "depth", title, "share", "by itself"], ...inOrder.map((node) => [
    tree.name(node), node === 0 ? "" : framePlace(tree.frame[node]), tree.depth[node] - tree.depth[root],
    [write(all[node]), all[node]], [percent(all[0] > 0 ? all[node] / all[0] : 0), all[node]], [write(own[node]), own[node]]])];
}

function startIcicle() {
  const one = plot("icicle", drawIcicle, icicleLines);
  icicleDetails = () => one.fill();
  const canvas = icicleCanvas();
  canvas.addEventListener("click", (event) => { const node = nodeUnder(event); if (node >= 0) enter(node); });
  canvas.addEventListener("pointermove", (event) => {
    const node = nodeUnder(event);
    canvas.style.cursor = node >= 0 ? "pointer" : "";
    if (node >= 0) showTip(event.clientX, event.clientY, nodeLines(node));
    else hideTip();
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("keydown", icicleKey);
  for (const radio of document.getElementsByName("weight")) {
    radio.addEventListener("change", () => setWeight(radio.value));
  }
  byId("icicle-search").addEventListener("input", (event) => searchIcicle(event.target.value));
  byId("only").addEventListener("click", () => choose(icicle.tree.sitesBelow(icicle.root), icicle.tree.name(icicle.root)));
  byId("weight-words").textContent = weights.bytes.words;
}
