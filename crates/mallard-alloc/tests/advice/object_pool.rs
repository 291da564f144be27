// In render_document (render.cpp:40)
use mallard::handles::Box;
use mallard::ObjectPool;

pub struct Object {
    // the type that is made there
    pub id: u64,
    pub value: f64,
}

/// `objects` is made once, where the program starts: one for each call saves much less.
pub fn render_document(objects: &ObjectPool<Object>, id: u64) -> Box<'_, Object> {
    objects.make(Object { id, value: 0.0 }) // the box drops the object at its end
}
