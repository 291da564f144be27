// Formats figures with units as the command does: 1.5 KiB, 3.2 ms, 4,600,000, 12 %.

// Formats a figure with one decimal below 10, and without decimals otherwise.
function short(figure) {
  const rounded = Math.abs(figure) < 0.05 ? 0 : figure; // never -0.0
  return rounded.toFixed(Math.abs(rounded) < 9.95 ? 1 : 0);
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let figure = count;
  let unit = 0;
  while (Math.abs(figure) >= 1023.95 && unit + 1 < units.length) {
    figure /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(count) : short(figure)} ${units[unit]}`;
}

function time(ns) {
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${short(ns / 1e3)} us`;
  if (ns < 1e9) return `${short(ns / 1e6)} ms`;
  if (ns < 120e9) return `${short(ns / 1e9)} s`;
  return `${Math.floor(ns / 60e9)} min ${Math.round((ns % 60e9) / 1e9)} s`;
}

// Formats a time at a tick of an axis, in seconds, with at most three digits and without trailing
// zeros: 1.25 s or 1.5 s.
function seconds(ns) {
  return `${Number((ns / 1e9).toPrecision(3))} s`;
}

function count(number) {
  return Math.round(number).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

// Formats a count in words: 4.6 million.
function roughly(number) {
  const units = [[1e9, " billion"], [1e6, " million"]];
  const [scale, unit] = units.find(([least]) => number >= least) ?? [1, ""];
  return unit ? short(number / scale) + unit : count(number);
}

function plural(number, word) {
  return number === 1 ? `1 ${word}` : `${count(number)} ${word}s`;
}

function percent(share) {
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  return `${short(share * 100)} %`;
}

// Formats a measured figure with three digits: 0.734, 12.5, 3,210.
function figure(number) {
  if (Math.abs(number) >= 1000) return count(number);
  return String(Number(number.toPrecision(3)));
}
