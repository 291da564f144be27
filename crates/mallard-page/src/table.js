// Sorts and fills tables. A reader sorts a table by a column title, with the mouse or the keyboard.

// Sorts `places` by `compare` and returns them. Places of a lower `rank` always come first. `down`
// reverses only the places of rank 0, which are those of figures.
function ordered(places, rank, compare, down) {
  const groups = [];
  for (const place of places) (groups[rank(place)] ??= []).push(place);
  return groups.map((group, at) => group.sort(down && at === 0 ? (a, b) => compare(b, a) : compare)).flat();
}

// Calls `sort` with a column title when the reader clicks the title, or presses Enter on the title.
function onTitle(root, sort) {
  const chosen = (event) => {
    const title = event.target.closest?.("thead th[tabindex]");
    if (title && (event.type === "click" || event.key === "Enter")) sort(title);
  };
  root.addEventListener("click", chosen);
  root.addEventListener("keydown", chosen);
}

// Marks a column title as sorted, and its neighbours as not sorted.
function markSorted(title, down) {
  for (const other of title.parentNode.children) other.removeAttribute("aria-sort");
  title.setAttribute("aria-sort", down ? "descending" : "ascending");
}

// Returns the sort key of a cell. Figures come first, then FAIL, then words, then empty cells. The
// attribute `data-key` of a cell replaces the figure in its text.
function cellKey(cell) {
  const own = cell?.dataset.key;
  if (own !== undefined) return [own === "" ? 3 : 0, Number(own), ""];
  const text = (cell?.firstChild?.textContent ?? "").trim();
  const power = text.match(/^(\d+)\^(\d+)/);
  if (power) return [0, Number(power[1]) ** Number(power[2]), text];
  const figure = parseFloat(text);
  if (!Number.isNaN(figure)) return [0, figure, text];
  return [text === "" ? 3 : text === "FAIL" ? 1 : 2, 0, text];
}

// Sorts the rows of a table by the column of a title.
function sortTable(title) {
  const place = [...title.parentNode.children].indexOf(title);
  const body = title.closest("table").tBodies[0];
  const down = title.getAttribute("aria-sort") === "ascending";
  markSorted(title, down);
  const rows = [...body.rows];
  const keys = rows.map((row) => cellKey(row.children[place]));
  const compare = (a, b) => keys[a][1] - keys[b][1] || keys[a][2].localeCompare(keys[b][2]);
  const order = ordered(rows.map((_, i) => i), (i) => keys[i][0], compare, down);
  body.append(...order.map((i) => rows[i]));
}

function tableRow(cells, isHead) {
  const row = document.createElement("tr");
  for (const [i, content] of cells.entries()) {
    const cell = document.createElement(isHead || i === 0 ? "th" : "td");
    if (cell.tagName === "TH") cell.scope = isHead ? "col" : "row";
    if (isHead) cell.tabIndex = 0;
    // A cell is a text, or a pair of a text and the figure to sort by.
    const [text, key] = Array.isArray(content) ? content : [content];
    cell.textContent = text;
    if (key !== undefined) cell.dataset.key = key;
    row.append(cell);
  }
  return row;
}

// Fills a table with `lines`, each of which is a list of cells. The first line has the titles.
function tabulate(table, lines) {
  table.replaceChildren(document.createElement("thead"), document.createElement("tbody"));
  table.tHead.append(tableRow(lines[0], true));
  table.tBodies[0].append(...lines.slice(1).map((line) => tableRow(line, false)));
}
