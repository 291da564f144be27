// In render_document (render.cpp:40)
use mallard::Arena;

pub fn render_document(input: &str) -> usize {
    // Each call has its own arena. Values in the arena are never dropped: their memory is freed when the
    // arena ends.
    let memory = Arena::new();
    let parts: &mut [&str] = memory.alloc_iter(input.split(' '));
    let title = memory.alloc_fmt(format_args!("{} parts", parts.len()));
    title.len()
}
