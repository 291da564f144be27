//! The slots of a pool, which consist of its source and, after the first allocation, its core.

use super::core_trait::{Core, LiveCursor};
use super::layout::SlotShape;
use crate::base::full::{Cause, Full};
use crate::base::source::{bytes_missing, Chunk, Source};
use crate::sync::Mode;
use crate::{Growth, Statistics, Validity};
use core::alloc::Layout;
use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::*};

type Block = NonNull<u8>;

/// The rule that determines how many bytes a pool requests from its source at a time, and in all.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sizing {
    /// The default rule, with growth steps of 64 KiB at first, doubling to 1 MiB.
    Usual,
    /// The rule that the caller has chosen.
    Growth(Growth),
    /// The same as `Usual`, but the first growth step has room for this number of slots.
    First(usize),
    /// Exactly this number of slots, in one growth step. The pool never grows after this step.
    Fixed(usize),
}

/// The source of a pool, and the pool's hooks.
pub(crate) struct Upstream<S, X> {
    source: S,
    hooks: X,
    /// The memory that contains the core, if there is a core.
    core_memory: Option<Chunk>,
}

/// The `Upstream` inside a core. `take_core` moves the `Upstream` out before the core is dropped,
/// and `ManuallyDrop` prevents the core from dropping the source.
pub(crate) struct Kept<S, X> {
    upstream: ManuallyDrop<Upstream<S, X>>,
}

// SAFETY: all calls are passed to the source, which fulfils the guarantees of `Source`.
unsafe impl<S: Source, X> Source for Kept<S, X> {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        self.upstream.source.try_take(layout)
    }
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: the caller meets the safety conditions of the same function.
        unsafe { self.upstream.source.give(chunk) }
    }
}

pub(crate) type CoreOf<M, S, X> = <M as Mode>::Core<Kept<S, X>>;

/// The slots of one pool.
///
/// The core manages the blocks. The first allocation makes the core, in memory from the source.
/// Chunks point to the core, and a Rust move runs no code that could update such pointers, so the
/// core must not move with the pool.
pub(crate) struct Slots<M: Mode, S: Source, X = ()> {
    core: CorePtr<M>,
    /// The source and the hooks. This field is valid while there is no core.
    upstream: UnsafeCell<MaybeUninit<Upstream<S, X>>>,
    shape: SlotShape,
    sizing: Sizing,
    /// The number of bytes that a buffer lacked for the first block, or 0 for other sources. Any
    /// thread may read this number. No thread may ask the source itself, because another thread may
    /// be moving the source into a core.
    missing: AtomicU32,
    /// The summed counters of all cores that `release` has dropped.
    past: Cell<Statistics>,
}

impl<M: Mode, S: Source, X> Slots<M, S, X> {
    pub(crate) const fn new(layout: Layout, sizing: Sizing, source: S, hooks: X) -> Self {
        let mut shape = SlotShape::of(layout, M::CHUNK);
        if let Sizing::Fixed(count) = sizing {
            // In `most`, `usize::MAX` means "no bound". For a fixed pool of `usize::MAX` slots, the
            // bound is one less, because no source has memory for so many slots.
            shape.most = if count == usize::MAX { count - 1 } else { count };
        }
        let upstream = Upstream { source, hooks, core_memory: None };
        Self {
            core: CorePtr::NONE,
            upstream: UnsafeCell::new(MaybeUninit::new(upstream)),
            shape,
            sizing,
            missing: AtomicU32::new(0),
            past: Cell::new(Statistics::ZERO),
        }
    }

    pub(crate) const fn shape(&self) -> &SlotShape {
        &self.shape
    }

    #[inline(always)]
    pub(crate) fn core(&self) -> Option<&CoreOf<M, S, X>> {
        // SAFETY: the pointer is null, or points to the core, which exists until `take_core` is
        // called with `&mut self`.
        unsafe { self.core.get().cast::<CoreOf<M, S, X>>().as_ref() }
    }
    fn core_mut(&mut self) -> Option<&mut CoreOf<M, S, X>> {
        // SAFETY: the pointer is null, or points to the core. `&mut self` excludes all other users
        // of the core.
        unsafe { self.core.get().cast::<CoreOf<M, S, X>>().as_mut() }
    }

    #[inline(always)]
    pub(crate) fn try_allocate(&self) -> Option<Block> {
        match self.core() {
            Some(core) => core.try_allocate(),
            None => self.allocate_first(),
        }
    }
    /// Allocates like `try_allocate`, for a caller that knows the shape as a constant.
    #[inline(always)]
    pub(crate) fn try_allocate_of(&self, shape: &SlotShape) -> Option<Block> {
        match self.core() {
            Some(core) => core.try_allocate_of(shape),
            None => self.allocate_first(),
        }
    }

    /// Returns the error of a call that got no block.
    #[cold]
    #[inline(never)]
    pub(crate) fn full<T>(&self, value: T) -> Full<T> {
        let cause = match (self.core(), self.missing.load(Relaxed)) {
            (None, missing @ 1..) => Cause::BufferTooSmall { missing },
            _ => Cause::NoMemory,
        };
        Full::because(cause, value)
    }

    #[cold]
    #[inline(never)]
    fn allocate_first(&self) -> Option<Block> {
        self.make_core()?.try_allocate()
    }

    pub(crate) fn try_allocate_batch(&self, out: &mut [MaybeUninit<Block>]) -> bool {
        match self.core().or_else(|| self.make_core()) {
            Some(core) => core.try_allocate_batch(out),
            None => out.is_empty(),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_core(&self) -> Option<&CoreOf<M, S, X>> {
        if self.core.begin() {
            struct End<'c, M: Mode>(&'c CorePtr<M>);
            impl<M: Mode> Drop for End<'_, M> {
                fn drop(&mut self) {
                    self.0.end();
                }
            }
            let _end = End(&self.core); // calls `end`, even if the source panics
            self.core.set(self.new_core()?.cast().as_ptr());
        }
        self.core()
    }

    /// Makes a core, and moves the upstream into the core.
    fn new_core(&self) -> Option<NonNull<CoreOf<M, S, X>>> {
        let layout = Layout::new::<CoreOf<M, S, X>>();
        // SAFETY: there is no core, so the upstream is valid, and other threads only read it.
        let source = unsafe { &(*self.upstream.get()).assume_init_ref().source };
        let growth = self.growth(layout.size());
        let count = if let Sizing::Fixed(count) = self.sizing { count } else { 1 };
        let blocks = CoreOf::<M, S, X>::bytes_for(self.shape, count);
        let aside = CoreOf::<M, S, X>::bytes_aside(self.shape, growth.limit);
        let bytes = blocks.saturating_add(aside + layout.size() + layout.align() - 1);
        let missing = bytes_missing(source, bytes, self.shape.chunk);
        self.missing.store(missing, Relaxed);
        if missing != 0 {
            return None;
        }
        let memory = source.try_take(layout)?;
        // SAFETY: there is no core, so the upstream is valid. Nothing can fail from here on, so the
        // copy becomes a part of the new core, and the pool no longer uses its own upstream.
        let mut upstream = unsafe { (*self.upstream.get()).assume_init_read() };
        upstream.core_memory = Some(memory);
        let growth = self.growth(memory.layout.size());
        let core = memory.data.cast::<CoreOf<M, S, X>>();
        let kept = Kept { upstream: ManuallyDrop::new(upstream) };
        // SAFETY: the memory has the layout of a core.
        unsafe { core.write(CoreOf::<M, S, X>::new(self.shape, growth, kept)) };
        Some(core)
    }

    /// Returns the growth rule for the core's chunks. The size of the core itself counts towards
    /// the limit.
    fn growth(&self, core_bytes: usize) -> Growth {
        let usual = Growth { first: self.shape.bytes.min(65536), ..Growth::new() };
        let bytes = |count| CoreOf::<M, S, X>::bytes_for(self.shape, count);
        match self.sizing {
            Sizing::Usual => usual,
            Sizing::Growth(g) => Growth { limit: g.limit.saturating_sub(core_bytes), ..g },
            Sizing::First(count) => {
                Growth { first: bytes(count), max: usual.max.max(bytes(count)), ..usual }
            }
            Sizing::Fixed(count) => Growth::none(bytes(count)),
        }
    }

    /// Returns the source and the hooks, from the core or from the pool. Needs `&mut self`, because
    /// otherwise another call could move both into a new core at the same time.
    pub(crate) fn upstream(&mut self) -> (&S, &X) {
        let upstream = match self.core() {
            Some(core) => &*core.source().upstream,
            // SAFETY: there is no core, so the upstream is valid.
            None => unsafe { (*self.upstream.get()).assume_init_ref() },
        };
        (&upstream.source, &upstream.hooks)
    }

    /// Returns the core that allocated `block`.
    ///
    /// # Safety
    /// `block` is in use. It was allocated from slots of this type and shape, which outlive `'a`.
    #[inline(always)]
    pub(crate) unsafe fn core_of<'a>(block: Block, shape: &SlotShape) -> &'a CoreOf<M, S, X>
    where
        S: 'a,
        X: 'a,
    {
        // SAFETY: the caller guarantees that `block` is in use and has this shape.
        unsafe { CoreOf::<M, S, X>::of(block, shape) }
    }
    #[inline(always)]
    pub(crate) fn hooks_of<'a>(core: &'a CoreOf<M, S, X>) -> &'a X
    where
        S: 'a,
    {
        &core.source().upstream.hooks
    }

    /// Returns these slots with other hooks. Requires that there is no core yet.
    pub(crate) fn with_hooks<Y>(mut self, hooks: Y) -> Slots<M, S, Y> {
        debug_assert!(self.core().is_none());
        // SAFETY: there is no core, so the upstream is valid. `forget` prevents a second drop.
        let before = unsafe { self.upstream.get_mut().assume_init_read() };
        let (shape, sizing, past) = (self.shape, self.sizing, self.past.get());
        core::mem::forget(self);
        let upstream = Upstream { source: before.source, hooks, core_memory: None };
        Slots {
            core: CorePtr::NONE,
            upstream: UnsafeCell::new(MaybeUninit::new(upstream)),
            shape,
            sizing,
            missing: AtomicU32::new(0),
            past: Cell::new(past),
        }
    }

    pub(crate) fn next_live(&mut self, cursor: &mut LiveCursor) -> Option<Block> {
        self.core_mut()?.next_live(cursor)
    }
    pub(crate) fn reset(&mut self) {
        if let Some(core) = self.core_mut() {
            core.reset();
        }
    }
    pub(crate) fn trim(&mut self, keep: usize) {
        if let Some(core) = self.core_mut() {
            core.trim(keep);
        }
    }
    /// Returns all memory to the source. Afterwards the pool is in its initial state.
    pub(crate) fn release(&mut self) {
        if let Some(upstream) = self.take_core() {
            self.upstream.get_mut().write(upstream);
        }
    }

    /// Drops the core, and returns all memory to the source.
    fn take_core(&mut self) -> Option<Upstream<S, X>> {
        let core = NonNull::new(self.core.get())?.cast::<CoreOf<M, S, X>>();
        // SAFETY: the pointer points to the core. `&mut self` excludes other users, and the core is
        // not used after this block.
        let upstream = unsafe {
            (*core.as_ptr()).release();
            let Statistics { growths, refills, flushes, .. } = (*core.as_ptr()).statistics();
            let past = Statistics { growths, refills, flushes, ..Statistics::ZERO };
            self.past.set(self.past.get() + past);
            self.core.set(null_mut());
            let upstream = (&raw const *(*core.as_ptr()).source().upstream).read();
            core.drop_in_place(); // does not drop the upstream, which is in a `ManuallyDrop`
            upstream
        };
        if let Some(chunk) = upstream.core_memory {
            // SAFETY: this source supplied the chunk, and the core in the chunk was dropped.
            unsafe { upstream.source.give(chunk) };
        }
        Some(Upstream { core_memory: None, ..upstream })
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let Some(core) = self.core() else { return self.past.get() };
        let mut s = core.statistics() + self.past.get();
        s.bytes_taken += core.source().upstream.core_memory.map_or(0, |chunk| chunk.layout.size());
        s
    }
    pub(crate) fn classify(&self, p: *const u8) -> Validity {
        self.core().map_or(Validity::Miss, |core| core.classify(p))
    }

    pub(crate) fn len(&self) -> usize {
        self.core().map_or(0, |core| core.statistics().blocks_live)
    }
    pub(crate) fn capacity(&self) -> usize {
        match self.sizing {
            Sizing::Fixed(count) => count,
            _ => {
                let s = self.core().map_or(Statistics::ZERO, Core::statistics);
                (s.bytes_live + s.bytes_idle) / self.shape.stride
            }
        }
    }
    pub(crate) fn available(&self) -> usize {
        self.capacity().saturating_sub(self.len())
    }
}

impl<M: Mode, S: Source, X> Drop for Slots<M, S, X> {
    fn drop(&mut self) {
        if self.take_core().is_none() {
            // SAFETY: there is no core, so the upstream is valid, and it is dropped nowhere else.
            unsafe { self.upstream.get_mut().assume_init_drop() };
        }
    }
}

/// The address of a pool's core, or null if there is no core.
struct CorePtr<M> {
    core: AtomicPtr<u8>,
    /// Whether a thread is making the core.
    busy: AtomicBool,
    mode: PhantomData<fn(M)>,
}

impl<M: Mode> CorePtr<M> {
    #[allow(clippy::declare_interior_mutable_const)] // an initial value
    const NONE: Self =
        Self { core: AtomicPtr::new(null_mut()), busy: AtomicBool::new(false), mode: PhantomData };

    #[inline(always)]
    fn get(&self) -> *mut u8 {
        self.core.load(if M::IS_SHARED { Acquire } else { Relaxed })
    }
    /// Stores the address of the core. Only the thread to which `begin` returned `true`, or a
    /// thread with exclusive access to the pool, may call this function.
    fn set(&self, core: *mut u8) {
        self.core.store(core, Release);
    }

    /// Returns `true` if the caller has to make the core and then call `end`. Until then, other
    /// threads that call `begin` wait, which happens once for each core. Returns `false` if there
    /// is a core already, or if the caller is the source, which is just supplying the memory of the
    /// core.
    fn begin(&self) -> bool {
        if !M::IS_SHARED {
            if !self.get().is_null() || self.busy.load(Relaxed) {
                return false;
            }
            self.busy.store(true, Relaxed);
            return true;
        }
        while self.busy.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            #[cfg(feature = "std")]
            std::thread::yield_now();
            #[cfg(not(feature = "std"))]
            core::hint::spin_loop();
        }
        let first = self.get().is_null();
        if !first {
            self.end();
        }
        first
    }
    fn end(&self) {
        self.busy.store(false, Release);
    }
}
