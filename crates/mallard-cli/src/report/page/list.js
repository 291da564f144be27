// Shows a long table. Only the rows in view are in the document, so the cost does not grow with the
// number of rows.

const ROWS_BEYOND = 6; // rows above and below the view, for quick scrolling

// A table in `box`, which scrolls and contains a table with titles. `write(row, place)` fills a
// row, `pick(place)` is called when the reader chooses a row, and `height` is the height of a row.
class LongTable {
  constructor(box, { height, write, pick }) {
    Object.assign(this, { box, height, write, pick, order: [], active: 0, first: -1 });
    this.table = box.querySelector("table");
    this.body = this.table.tBodies[0];
    this.above = this.spacer();
    this.below = this.spacer();
    this.body.append(this.above, this.below);
    this.rows = [];
    box.addEventListener("scroll", () => this.show(), { passive: true });
    box.addEventListener("keydown", (event) => this.onKey(event));
    this.body.addEventListener("click", (event) => this.onClick(event));
    new ResizeObserver(() => this.show(true)).observe(box);
  }

  spacer() {
    const row = document.createElement("tr");
    row.className = "spacer";
    row.setAttribute("aria-hidden", "true");
    row.append(document.createElement("td"));
    row.firstChild.colSpan = this.table.tHead.rows[0].cells.length;
    return row;
  }

  // Shows other rows, or the same rows in another order.
  setOrder(order) {
    this.order = order;
    this.active = 0;
    this.box.scrollTop = 0;
    this.table.setAttribute("aria-rowcount", order.length + 1);
    this.show(true);
  }

  // Makes the rows that are in view.
  show(again = false) {
    const inView = Math.ceil((this.box.clientHeight || 400) / this.height);
    const last = Math.max(0, this.order.length - inView - 2 * ROWS_BEYOND);
    const first = Math.min(last, Math.max(0, Math.floor(this.box.scrollTop / this.height) - ROWS_BEYOND));
    if (first === this.first && !again) return;
    this.first = first;
    const count = Math.min(this.order.length - first, inView + 2 * ROWS_BEYOND);
    this.haveRows(count);
    for (let i = 0; i < count; i++) this.fill(this.rows[i], first + i);
    this.above.firstChild.style.height = `${first * this.height}px`;
    this.below.firstChild.style.height = `${(this.order.length - first - count) * this.height}px`;
    this.above.hidden = first === 0;
    this.below.hidden = first + count >= this.order.length;
    this.markActive();
  }

  haveRows(count) {
    while (this.rows.length > count) this.rows.pop().remove();
    while (this.rows.length < count) {
      const row = document.createElement("tr");
      this.rows.push(row);
      this.body.insertBefore(row, this.below);
    }
  }

  fill(row, index) {
    row.id = `row-${index}`;
    row.setAttribute("aria-rowindex", index + 2);
    row.dataset.index = index;
    this.write(row, this.order[index]);
  }

  markActive() {
    for (const row of this.rows) row.classList.toggle("active", Number(row.dataset.index) === this.active);
    if (this.order.length) this.table.setAttribute("aria-activedescendant", `row-${this.active}`);
    else this.table.removeAttribute("aria-activedescendant");
  }

  // Makes a row the active one, and scrolls it into view.
  activate(index) {
    this.active = Math.min(Math.max(0, index), Math.max(0, this.order.length - 1));
    const head = this.table.tHead.offsetHeight;
    const top = this.active * this.height;
    const view = this.box.clientHeight - head - this.height;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top > this.box.scrollTop + view) this.box.scrollTop = top - view;
    this.show(true);
  }

  onKey(event) {
    if (event.target.closest("thead")) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.height) - 2);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in moves) this.activate(this.active + moves[event.key]);
    else if (event.key === "Enter" && this.order.length) this.pick(this.order[this.active]);
    else return;
    event.preventDefault();
  }

  onClick(event) {
    const row = event.target.closest("tr:not(.spacer)");
    if (!row) return;
    this.active = Number(row.dataset.index);
    this.markActive();
    this.pick(this.order[this.active]);
  }
}
