// Shows a small box near the pointer or the focused element that describes what is there.

const tip = byId("tip");

// Shows lines of text near a point of the window.
function showTip(x, y, lines) {
  tip.replaceChildren(...lines.filter(Boolean).map((line, i) => {
    const part = document.createElement(i === 0 ? "b" : "span");
    part.textContent = line;
    return part;
  }));
  tip.hidden = false;
  const margin = 8;
  const box = tip.getBoundingClientRect();
  const left = Math.min(Math.max(margin, x + 14), Math.max(margin, innerWidth - box.width - margin));
  const below = y + 16;
  const top = below + box.height + margin < innerHeight ? below : Math.max(margin, y - box.height - 12);
  tip.style.left = `${left}px`;
  tip.style.top = `${top}px`;
}

function hideTip() {
  tip.hidden = true;
}

// Shows a tip for each element inside `root` for which `lines` returns text: on hover, on focus and
// on tap.
function tipsIn(root, selector, lines) {
  const show = (event) => {
    const target = event.target.closest?.(selector);
    const said = target && lines(target);
    if (!said) return hideTip();
    const box = target.getBoundingClientRect();
    showTip(box.left, box.bottom - 8, said);
  };
  for (const kind of ["pointerover", "focusin", "click"]) root.addEventListener(kind, show);
  for (const kind of ["pointerleave", "focusout", "scroll"]) root.addEventListener(kind, hideTip, true);
}

// A tip disappears when the reader scrolls. The event `scroll` is not suitable, because the browser
// also scrolls by itself when a choice changes the length of the page.
for (const kind of ["wheel", "touchmove"]) addEventListener(kind, hideTip, { passive: true });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !tip.hidden) hideTip();
});
