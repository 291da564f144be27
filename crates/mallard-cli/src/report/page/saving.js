// Formats savings and their intervals.

// Returns a list of the data; empty if the data have no such list.
const listOf = (value) => (Array.isArray(value) ? value : []);

// Formats a saving in words: 12 % (10 to 14 %).
function interval(part) {
  if (!Number.isFinite(part?.saving)) return "unknown";
  return `${percent(part.saving)} (${percent(part.low).replace(" %", "")} to ${percent(part.high)})`;
}

// Formats an interval without the figure in it: 10 to 14 %.
const range = (part) => `${percent(part.low).replace(" %", "")} to ${percent(part.high)}`;

const measuredWords = { try: "measured in runs of the program", replay: "by replay of the recording", account: "by arithmetic over the recording" };
