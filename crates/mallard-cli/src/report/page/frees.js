// Draws the matrix of frees, which shows which threads free the blocks of which threads.

const threads = { name: [], tid: [], allocs: [], frees: [], ...data.threads };
const freesView = { cell: null, left: 0, top: 0, size: 0, values: [] };

const freesCanvas = () => byId("frees").querySelector("canvas");
const threadCount = () => threads.name.length;

function threadName(thread) {
  const name = text(threads.name[thread]);
  const id = threads.tid[thread];
  return name || (id > 0 ? `thread ${id}` : `thread ${thread + 1}`);
}

// Returns the number of frees as a dense table, with a row for each allocating thread and a column
// for each freeing thread.
function freesValues() {
  const all = threadCount();
  const triples = isFiltered() ? chosenDetails().map((place) => detail.frees[place] ?? []) : [data.frees ?? []];
  const values = new Float64Array(all * all);
  for (const list of triples) {
    for (let i = 0; i + 2 < list.length; i += 3) values[list[i] * all + list[i + 1]] += list[i + 2];
  }
  return values;
}

function freesSentence() {
  const all = threadCount();
  let [sum, own] = [0, 0];
  for (const [cell, value] of freesView.values.entries()) {
    sum += value;
    if (cell % all === Math.floor(cell / all)) own += value;
  }
  if (sum === 0) return "No block was freed.";
  if (sum === own) return all > 1 ? "Each block was freed by the thread that allocated it." : "The program has one thread.";
  return `${percent((sum - own) / sum)} of the freed blocks were freed by another thread than the one that allocated them.`;
}

const freesPlace = (column, row) => [freesView.left + column * freesView.size, freesView.top + row * freesView.size];

function drawFrees() {
  freesView.values = freesValues();
  byId("frees-words").textContent = freesSentence();
  const canvas = freesCanvas();
  const width = canvas.parentNode.clientWidth;
  const all = Math.max(1, threadCount());
  const names = width < 500 ? 90 : 150;
  Object.assign(freesView, { left: names, top: 84, size: Math.min(44, Math.max(4, (width - names - 4) / all)) });
  const context = clean(canvas, width, freesView.top + all * freesView.size + 4);
  drawCells(context, [...freesView.values], all, freesPlace, [freesView.size, freesView.size]);
  drawThreadNames(context, names);
  if (freesView.cell !== null) {
    const [x, y] = freesPlace(freesView.cell % all, Math.floor(freesView.cell / all));
    context.strokeStyle = ink("text");
    context.lineWidth = 2;
    context.strokeRect(x, y, freesView.size, freesView.size);
  }
}

// Draws the names of the threads. Allocating threads are next to the rows, and freeing threads
// above the columns.
function drawThreadNames(context, room) {
  const each = Math.max(1, Math.ceil(14 / freesView.size));
  context.fillStyle = ink("dim");
  context.textAlign = "right";
  context.fillText("freed by →", room - 8, freesView.top - 28);
  context.fillText("allocated by ↓", room - 8, freesView.top - 12);
  for (let thread = 0; thread < threadCount(); thread += each) {
    const [x, y] = freesPlace(thread, thread);
    context.textAlign = "right";
    context.fillText(cut(context, threadName(thread), room - 12), room - 8, y + freesView.size / 2);
    context.save();
    context.translate(x + freesView.size / 2, freesView.top - 6);
    context.rotate(-Math.PI / 3);
    context.textAlign = "left";
    context.fillText(cut(context, threadName(thread), 84), 0, 0);
    context.restore();
  }
}

function freesLines(cell) {
  const all = threadCount();
  const [from, to] = [Math.floor(cell / all), cell % all];
  const sum = freesView.values.reduce((total, value) => total + value, 0);
  return [`${plural(freesView.values[cell], "block")}, ${percent(sum > 0 ? freesView.values[cell] / sum : 0)}`,
    `allocated by ${threadName(from)}`, `freed by ${from === to ? "the same thread" : threadName(to)}`];
}

function freesAt(x, y) {
  const column = Math.floor((x - freesView.left) / freesView.size);
  const row = Math.floor((y - freesView.top) / freesView.size);
  const all = threadCount();
  return column >= 0 && row >= 0 && column < all && row < all ? row * all + column : null;
}

function freesStep(cell, dx, dy) {
  const all = threadCount();
  const keep = (at) => Math.min(all - 1, Math.max(0, at));
  return keep(Math.floor(cell / all) + dy) * all + keep((cell % all) + dx);
}

function freesTable() {
  const all = threadCount();
  const values = freesValues();
  const sum = values.reduce((total, value) => total + value, 0);
  const cells = [...values.keys()].filter((cell) => values[cell] > 0).sort((a, b) => values[b] - values[a]);
  return [["allocated by", "freed by", "blocks", "share"], ...cells.map((cell) => [
    threadName(Math.floor(cell / all)), threadName(cell % all), [count(values[cell]), values[cell]],
    [percent(values[cell] / sum), values[cell]]])];
}

function startFrees() {
  plot("frees", drawFrees, freesTable);
  walk(freesCanvas(), byId("frees-said"), {
    at: freesAt, step: freesStep, words: freesLines, first: () => (threadCount() ? 0 : null),
    frame: (cell) => { freesView.cell = cell; drawFrees(); },
  });
}
