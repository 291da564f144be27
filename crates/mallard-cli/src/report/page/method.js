// Fills the section on the recording: versions, losses, the cost of recording, and commands to type
// next.

function methodRows() {
  const program = data.program ?? {};
  const method = data.method ?? {};
  const sampled = method.sampled_bytes > 0
    ? `sampled: one allocation in about ${bytes(method.sampled_bytes)}` : "every call of malloc and free";
  return [
    ["recorded", sampled], ["events", count(totals.events ?? 0)], ["cost of recording", method.own_cost],
    ["allocator", program.allocator], ["C library", program.libc], ["kernel", program.kernel],
    ["processor", program.cpu], ["host", program.host],
    ["mallard", method.mallard && `${method.mallard}, format ${method.format}`],
  ].filter(([, value]) => value);
}

function startMethod() {
  const method = data.method ?? {};
  for (const [name, value] of methodRows()) {
    const row = add(byId("method-facts"), "div", "");
    add(row, "dt", name);
    add(row, "dd", value);
  }
  const losses = method.losses ?? [];
  byId("losses-none").hidden = losses.length > 0;
  const table = byId("losses");
  table.parentNode.hidden = losses.length === 0;
  tabulate(table, [["what is missing"], ...losses.map((what) => [what])]);
  for (const note of method.notes ?? []) write(add(byId("notes"), "li", ""), note);
  for (const letter of letters) {
    const measure = measures.get(letter);
    if (!measure) continue;
    const row = add(byId("meanings"), "div", "");
    add(row, "dt", `${letter.toUpperCase()}, ${measure.name}`);
    add(row, "dd", measure.words);
  }
  byId("next-box").hidden = !data.next;
  byId("next").textContent = data.next ?? "";
}
