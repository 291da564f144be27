// How savings and their intervals are written.

// A list of the data; empty if the data have none.
const listOf = (value) => (Array.isArray(value) ? value : []);

// The saving in words: 12 % (10 to 14 %).
function interval(part) {
  if (!Number.isFinite(part?.saving)) return "unknown";
  return `${percent(part.saving)} (${percent(part.low).replace(" %", "")} to ${percent(part.high)})`;
}

// An interval without the figure in it: 10 to 14 %.
const range = (part) => `${percent(part.low).replace(" %", "")} to ${percent(part.high)}`;

const measuredWords = { try: "measured in runs of the program", replay: "by replay of the recording", account: "by arithmetic over the recording" };
