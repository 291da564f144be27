// In render_document (render.cpp:40)
use mallard::Arena;

pub fn render_document(input: &str) -> usize {
    // One for each call. Values that `alloc` functions put into an arena are never dropped: its end
    // frees the memory.
    let memory = Arena::new();
    let parts: &mut [&str] = memory.alloc_iter(input.split(' '));
    let title = memory.alloc_fmt(format_args!("{} parts", parts.len()));
    title.len()
}
