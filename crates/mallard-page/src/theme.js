// Code that every page needs: functions to find elements, and the theme.

const byId = (id) => document.getElementById(id);
const pageRoot = document.documentElement;

// A browser may forbid storage for a page that was opened from a file.
function stored(task) {
  try {
    return task();
  } catch {
    return undefined;
  }
}

function isDark() {
  const chosen = pageRoot.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// Shows the theme that the reader chose before, or the theme of the system. Calls `changed`
// whenever the theme changes, because canvases must be drawn again.
function useTheme(changed) {
  const before = stored(() => localStorage.getItem("theme"));
  if (before) pageRoot.dataset.theme = before;
  byId("theme").addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    stored(() => localStorage.setItem("theme", theme));
    pageRoot.dataset.theme = theme;
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

// Returns the current colour of a CSS variable of the theme.
function colour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
