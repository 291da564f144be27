// Stores which sites the reader has chosen: one site, or all sites below a frame. Each plot shows
// only the chosen sites, and the bar at the top names them.

const choice = { sites: null, label: "", site: -1 };
const choiceListeners = [];

// `detail` has curves, heat maps, frees and addresses of some sites. `detailOf` maps a site to its
// index in the columns of `detail`.
const detail = { sites: [], live: [], live_t: [], heat: [], frees: [], map: [], ...data.detail };
const detailOf = new Map(detail.sites.map((site, place) => [site, place]));

function onChoice(listener) {
  choiceListeners.push(listener);
}

// Chooses sites. `site` is the chosen site, or -1 if there are several.
function choose(chosen, label, site = -1) {
  Object.assign(choice, { sites: chosen, label, site });
  for (const listener of choiceListeners) listener();
}

function chooseSite(site) {
  if (choice.site === site) return clearChoice();
  choose([site], siteName(site), site);
}

function clearChoice() {
  choose(null, "", -1);
}

// Returns the indices in `detail` of those chosen sites that have details.
function chosenDetails() {
  return (choice.sites ?? []).map((site) => detailOf.get(site)).filter((place) => place !== undefined);
}

// Returns a sentence that tells the reader which sites a plot shows.
function choiceNote() {
  if (!choice.sites) return "";
  const known = chosenDetails().length;
  const all = choice.sites.length;
  if (known === 0) {
    return all === 1
      ? "This site is too small to have a plot of its own. The plot shows the whole program."
      : "These sites are too small to have plots of their own. The plot shows the whole program.";
  }
  if (known < all) return `Only ${choice.label}: ${plural(known, "site")} of ${count(all)}; the others are too small.`;
  return `Only ${choice.label}.`;
}

// Whether plots show only chosen sites. If no chosen site has details, plots show the whole
// program.
const isFiltered = () => choice.sites !== null && chosenDetails().length > 0;

// Sums up the sparse counts of the chosen sites, [index, count, index, count ...], in a dense
// array.
function chosenCounts(column, length) {
  const sum = new Float64Array(length);
  for (const place of chosenDetails()) {
    const pairs = detail[column][place] ?? [];
    for (let i = 0; i + 1 < pairs.length; i += 2) {
      if (pairs[i] < length) sum[pairs[i]] += pairs[i + 1];
    }
  }
  return sum;
}

function startChoice() {
  const chip = byId("chip");
  onChoice(() => {
    chip.hidden = !choice.sites;
    byId("chip-name").textContent = choice.label;
    byId("said").textContent = choice.sites ? `Every plot shows only ${choice.label}.` : "Every plot shows the whole program.";
    for (const note of document.querySelectorAll(".of-choice")) {
      note.textContent = choiceNote();
      note.hidden = !choice.sites;
    }
  });
  chip.addEventListener("click", () => {
    clearChoice();
    byId("sites-list").focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && choice.sites && !event.defaultPrevented) clearChoice();
  });
}
