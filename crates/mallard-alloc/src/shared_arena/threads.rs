//! Which part of which arena is whose, as long as threads live.

use crate::loom::atomic::{AtomicBool, Ordering};
use alloc::sync::Arc;
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::AtomicUsize;
use std::thread_local;

/// A thread, as long as it or a part of it lives.
pub(super) struct Thread {
    ended: AtomicBool,
}

impl Thread {
    fn new() -> Self {
        Self { ended: AtomicBool::new(false) }
    }
    /// Whoever finds it so sees all that the thread did.
    fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }
    /// It is over, and all that it did is done.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// Set at the end of a thread.
struct Ending(Arc<Thread>);

impl Drop for Ending {
    fn drop(&mut self) {
        // First this thread forgets its parts, then others may have them.
        RECENT.with(|recent| recent.iter().for_each(|entry| entry.id.set(usize::MAX)));
        self.0.end();
    }
}

/// The part of this thread in the arena with an id; none where that is `usize::MAX`.
struct Recent {
    id: Cell<usize>,
    part: Cell<NonNull<()>>,
}

const RECENT_COUNT: usize = 8;

thread_local! {
    // Without a destructor, so it is there until the thread is not.
    static RECENT: [Recent; RECENT_COUNT] = const {
        [const { Recent { id: Cell::new(usize::MAX), part: Cell::new(NonNull::dangling()) } }; RECENT_COUNT]
    };
    static THREAD: Ending = Ending(Arc::new(Thread::new()));
}

/// The part that this thread `remember`ed for `id`.
#[inline(always)]
pub(super) fn recall(id: usize) -> Option<NonNull<()>> {
    RECENT.with(|recent| {
        let entry = &recent[id % RECENT_COUNT];
        let (known, part) = (entry.id.get(), entry.part.get());
        (known == id).then_some(part)
    })
}

/// `part` is this thread's, in the arena with this id, until the thread ends.
pub(super) fn remember(id: usize, part: NonNull<()>) {
    RECENT.with(|recent| {
        let entry = &recent[id % RECENT_COUNT];
        entry.part.set(part);
        entry.id.set(id);
    });
}

/// This thread; none when it is ending.
pub(super) fn this() -> Option<Arc<Thread>> {
    THREAD.try_with(|thread| thread.0.clone()).ok()
}

/// The next id, from 1; 0 when there are no more.
pub(super) fn next_id() -> usize {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let next = |last: usize| last.checked_add(1).filter(|id| *id != usize::MAX);
    match LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
        Ok(last) => last + 1,
        Err(_) => 0,
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::Thread;
    use crate::loom::{model, sync, thread, TrackedCell};
    use sync::Arc;

    #[test]
    fn who_finds_a_thread_ended_has_all_that_it_did_in_its_part() {
        model(|| {
            let part = Arc::new((Thread::new(), TrackedCell::new(0)));
            let owner = part.clone();
            let owner = thread::spawn(move || {
                // SAFETY: the model is there to find out.
                owner.1.with_mut(|n| unsafe { *n += 1 });
                owner.0.end();
            });
            if part.0.has_ended() {
                // SAFETY: the same.
                part.1.with_mut(|n| unsafe { *n += 1 });
            }
            owner.join().unwrap();
        });
    }
}
