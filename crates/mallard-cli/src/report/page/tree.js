// Builds the tree of call stacks. Frames of the same function below the same caller are one node. A
// node has, for each weight, the sum of the sites at or below it.

// Merges the nodes of the data. Returns the parent and one frame of each merged node, and the
// merged node of each node of the data.
function mergeStacks() {
  const total = Math.max(1, stacks.up.length);
  const merged = new Uint32Array(total);
  const parent = [0];
  const frame = [-1];
  const known = new Map(); // maps parent and function to a merged node
  const functions = functionNumbers();
  for (let node = 1; node < total; node++) {
    const above = merged[stacks.parent[node]];
    const key = above * functions.count + functions.of[stacks.frame[node]];
    let own = known.get(key);
    if (own === undefined) {
      own = parent.push(above) - 1;
      frame.push(stacks.frame[node]);
      known.set(key, own);
    }
    merged[node] = own;
  }
  return { merged, parent: Uint32Array.from(parent), frame: Int32Array.from(frame) };
}

// Numbers the functions. Frames with the same name and module have the same number.
function functionNumbers() {
  const numbers = new Map();
  const strings = data.strings.length + 1;
  const of = Uint32Array.from(frames.func, (func, i) => {
    const key = (func + 1) * strings + frames.module[i] + 1;
    if (!numbers.has(key)) numbers.set(key, numbers.size);
    return numbers.get(key);
  });
  return { of, count: numbers.size + 1 };
}

// Returns the children of all nodes in one list, in which those of node i are list[from[i]..from[i
// + 1]].
function childrenOf(parent) {
  const from = new Uint32Array(parent.length + 1);
  for (let node = 1; node < parent.length; node++) from[parent[node] + 1] += 1;
  for (let node = 0; node < parent.length; node++) from[node + 1] += from[node];
  const next = from.slice();
  const list = new Uint32Array(Math.max(0, parent.length - 1));
  for (let node = 1; node < parent.length; node++) list[next[parent[node]]++] = node;
  return { from, list };
}

class Tree {
  constructor() {
    Object.assign(this, mergeStacks());
    this.children = childrenOf(this.parent);
    this.totalsOf = new Map();
    this.sortedOf = new Map();
    this.depth = new Uint16Array(this.parent.length);
    for (let node = 1; node < this.parent.length; node++) this.depth[node] = this.depth[this.parent[node]] + 1;
  }

  // Returns the sums of a weight for each node. `own` counts the sites at the node, `all` also the
  // sites below.
  totals(weight) {
    if (!this.totalsOf.has(weight)) {
      const own = new Float64Array(this.parent.length);
      for (let site = 0; site < siteCount; site++) own[this.merged[sites.node[site]] ?? 0] += ofSite(weight, site) ?? 0;
      const all = own.slice();
      for (let node = all.length - 1; node > 0; node--) all[this.parent[node]] += all[node];
      this.totalsOf.set(weight, { own, all });
    }
    return this.totalsOf.get(weight);
  }

  // Returns the children of a node whose sum of a weight is above 0, the largest first.
  below(node, weight) {
    const key = `${weight} ${node}`;
    if (!this.sortedOf.has(key)) {
      const { all } = this.totals(weight);
      const list = this.children.list.slice(this.children.from[node], this.children.from[node + 1]);
      this.sortedOf.set(key, list.filter((child) => all[child] > 0).sort((a, b) => all[b] - all[a]));
    }
    return this.sortedOf.get(key);
  }

  // Returns the nodes from the root to a node.
  path(node) {
    const path = [node];
    while (path[0] > 0) path.unshift(this.parent[path[0]]);
    return path;
  }

  // Returns the sites at or below a node.
  sitesBelow(node) {
    const inside = new Uint8Array(this.parent.length);
    inside[node] = 1;
    for (let at = node + 1; at < inside.length; at++) inside[at] = inside[this.parent[at]];
    if (node === 0) inside.fill(1);
    const all = [];
    for (let site = 0; site < siteCount; site++) if (inside[this.merged[sites.node[site]]]) all.push(site);
    return all;
  }

  name(node) {
    return node === 0 ? "all stacks" : frameName(this.frame[node]);
  }
}
