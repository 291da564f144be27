// Unpacks the sections of the page that are closed when the page opens. The page contains them as
// compressed HTML, which is decompressed when a reader opens the section.

// Returns the text of a packed part.
function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(text).text();
}

// Unpacks a part, and calls `done` when the tables of the part exist.
async function unpack(details, done) {
  const packed = details.querySelector(":scope > script.packed");
  if (!packed) return;
  packed.remove();
  try {
    details.insertAdjacentHTML("beforeend", await unpacked(packed.textContent));
  } catch {
    details.append(element("p", "missing", "This browser cannot unpack this part. The file performance.md in the same directory has it as text."));
  }
  details.removeAttribute("data-packed");
  done();
}
