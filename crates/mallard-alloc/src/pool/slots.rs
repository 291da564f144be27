//! The slots of a typed or untyped pool: a core that is made when it is first needed.

use crate::base::source::{Chunk, Source};
use crate::sync::{Core, Home, LiveCursor, Mode, SlotShape};
use crate::{Growth, Statistics, Validity};
use core::alloc::Layout;
use core::cell::{Cell, UnsafeCell};
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;

type Block = NonNull<u8>;

/// How much a pool takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// 64 KiB at first, doubling to 1 MiB.
    Usual,
    Grow(Growth),
    /// As `Usual`, with a first step for so many.
    First(usize),
    /// So many in one step, and never more.
    Fixed(usize),
}

/// A source, and what else is found by a block: the hooks of a pool.
pub(crate) struct Upstream<S, X> {
    source: S,
    extra: X,
    /// The memory of the core, once there is one.
    own: Option<Chunk>,
}

/// In a core, which drops its source with itself. This one is moved out before.
pub(crate) struct Kept<S, X>(ManuallyDrop<Upstream<S, X>>);

// SAFETY: passed on to the source.
unsafe impl<S: Source, X> Source for Kept<S, X> {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        self.0.source.try_take(layout)
    }
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: passed on as it was given.
        unsafe { self.0.source.give(chunk) }
    }
}

pub(crate) type CoreOf<M, S, X> = <M as Mode>::Core<Kept<S, X>>;

/// A Rust move runs no code, so what chunks lead to may not move with the pool: the core stands
/// in memory of the source. Before there is one, what it is made of is here.
pub(crate) struct Slots<M: Mode, S: Source, X = ()> {
    home: M::Home,
    /// Valid while there is no core.
    seed: UnsafeCell<MaybeUninit<Upstream<S, X>>>,
    shape: SlotShape,
    plan: Plan,
    /// Counters of cores that are gone.
    past: Cell<Statistics>,
}

impl<M: Mode, S: Source, X> Slots<M, S, X> {
    pub(crate) const fn new(layout: Layout, plan: Plan, source: S, extra: X) -> Self {
        let mut shape = SlotShape::of(layout, M::CHUNK);
        if let Plan::Fixed(count) = plan {
            // One less than no bound: no source has either.
            shape.most = if count == usize::MAX { count - 1 } else { count };
        }
        Self {
            home: M::Home::EMPTY,
            seed: UnsafeCell::new(MaybeUninit::new(Upstream { source, extra, own: None })),
            shape,
            plan,
            past: Cell::new(NOTHING),
        }
    }

    pub(crate) const fn shape(&self) -> &SlotShape {
        &self.shape
    }

    #[inline(always)]
    pub(crate) fn core(&self) -> Option<&CoreOf<M, S, X>> {
        // SAFETY: null, or the core, which stays until `&mut self` takes it away.
        unsafe { self.home.get().cast::<CoreOf<M, S, X>>().as_ref() }
    }
    fn core_mut(&mut self) -> Option<&mut CoreOf<M, S, X>> {
        // SAFETY: the same; and nobody else is here.
        unsafe { self.home.get().cast::<CoreOf<M, S, X>>().as_mut() }
    }

    #[inline(always)]
    pub(crate) fn try_allocate(&self) -> Option<Block> {
        match self.core() {
            Some(core) => core.try_allocate(),
            None => self.first(),
        }
    }

    #[cold]
    #[inline(never)]
    fn first(&self) -> Option<Block> {
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
        if self.home.begin() {
            struct Ends<'h, H: Home>(&'h H);
            impl<H: Home> Drop for Ends<'_, H> {
                fn drop(&mut self) {
                    self.0.end();
                }
            }
            let _ends = Ends(&self.home); // even if the source panics
            self.home.set(self.plant()?.cast().as_ptr());
        }
        self.core()
    }

    /// Moves the seed into a new core.
    fn plant(&self) -> Option<NonNull<CoreOf<M, S, X>>> {
        let layout = Layout::new::<CoreOf<M, S, X>>();
        // SAFETY: there is no core, and we are the one to make it: the seed is valid, and only
        // read by others.
        let own = unsafe { (*self.seed.get()).assume_init_ref() }.source.try_take(layout)?;
        // SAFETY: the same; from here to the end nothing can fail, and then there is a core.
        let mut upstream = unsafe { (*self.seed.get()).assume_init_read() };
        upstream.own = Some(own);
        let growth = self.growth(own.layout.size());
        let core = own.data.cast::<CoreOf<M, S, X>>();
        let kept = Kept(ManuallyDrop::new(upstream));
        // SAFETY: the memory is for it.
        unsafe { core.write(CoreOf::<M, S, X>::new(self.shape, growth, kept)) };
        Some(core)
    }

    /// What is left of the growth beside the core itself.
    fn growth(&self, core_bytes: usize) -> Growth {
        let usual = Growth { first: self.shape.bytes.min(65536), ..Growth::new() };
        let bytes = |count| CoreOf::<M, S, X>::bytes_for(self.shape, count);
        match self.plan {
            Plan::Usual => usual,
            Plan::Grow(g) => Growth { limit: g.limit.saturating_sub(core_bytes), ..g },
            Plan::First(count) => {
                Growth { first: bytes(count), max: usual.max.max(bytes(count)), ..usual }
            }
            Plan::Fixed(count) => Growth::none(bytes(count)),
        }
    }

    /// The source and the extra, wherever they are. Not of `&self`: a core that is made
    /// meanwhile would take them away.
    pub(crate) fn upstream(&mut self) -> (&S, &X) {
        let upstream = match self.core() {
            Some(core) => &*core.source().0,
            // SAFETY: without a core the seed is valid.
            None => unsafe { (*self.seed.get()).assume_init_ref() },
        };
        (&upstream.source, &upstream.extra)
    }

    /// # Safety
    /// `block` is of slots of this type and shape, in use, which outlive `'a`.
    #[inline(always)]
    pub(crate) unsafe fn core_of<'a>(block: Block, shape: &SlotShape) -> &'a CoreOf<M, S, X>
    where
        S: 'a,
        X: 'a,
    {
        // SAFETY: passed on.
        unsafe { CoreOf::<M, S, X>::of(block, shape) }
    }
    #[inline(always)]
    pub(crate) fn extra_of<'a>(core: &'a CoreOf<M, S, X>) -> &'a X
    where
        S: 'a,
    {
        &core.source().0.extra
    }

    /// With another extra; there is no core.
    pub(crate) fn with_extra<Y>(mut self, extra: Y) -> Slots<M, S, Y> {
        debug_assert!(self.core().is_none());
        // SAFETY: without a core the seed is valid; `self` is not dropped.
        let before = unsafe { self.seed.get_mut().assume_init_read() };
        let (shape, plan, past) = (self.shape, self.plan, self.past.get());
        core::mem::forget(self);
        let seed = Upstream { source: before.source, extra, own: None };
        Slots {
            home: M::Home::EMPTY,
            seed: UnsafeCell::new(MaybeUninit::new(seed)),
            shape,
            plan,
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
    /// All memory goes back; it is as it was when new.
    pub(crate) fn release(&mut self) {
        if let Some(upstream) = self.uproot() {
            self.seed.get_mut().write(upstream);
        }
    }

    /// Takes the core away, and gives all memory back.
    fn uproot(&mut self) -> Option<Upstream<S, X>> {
        let core = NonNull::new(self.home.get())?.cast::<CoreOf<M, S, X>>();
        // SAFETY: it is the core, ours alone, and leaves the pool only at the end of this.
        let upstream = unsafe {
            (*core.as_ptr()).release();
            let Statistics { growths, refills, flushes, .. } = (*core.as_ptr()).statistics();
            let past = Statistics { growths, refills, flushes, ..NOTHING };
            self.past.set(self.past.get() + past);
            self.home.set(core::ptr::null_mut());
            let upstream = (&raw const *(*core.as_ptr()).source().0).read();
            core.drop_in_place(); // but for what was just moved out
            upstream
        };
        if let Some(chunk) = upstream.own {
            // SAFETY: it is from this source, and there is nothing in it any more.
            unsafe { upstream.source.give(chunk) };
        }
        Some(Upstream { own: None, ..upstream })
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let Some(core) = self.core() else { return self.past.get() };
        let mut s = core.statistics() + self.past.get();
        s.bytes_taken += core.source().0.own.map_or(0, |chunk| chunk.layout.size());
        s
    }
    pub(crate) fn classify(&self, p: *const u8) -> Validity {
        self.core().map_or(Validity::Miss, |core| core.classify(p))
    }

    pub(crate) fn len(&self) -> usize {
        self.core().map_or(0, |core| core.statistics().blocks_live)
    }
    pub(crate) fn capacity(&self) -> usize {
        match self.plan {
            Plan::Fixed(count) => count,
            _ => {
                let s = self.core().map_or(NOTHING, Core::statistics);
                (s.bytes_live + s.bytes_idle) / self.shape.stride
            }
        }
    }
    pub(crate) fn available(&self) -> usize {
        self.capacity().saturating_sub(self.len())
    }
}

const NOTHING: Statistics = Statistics {
    blocks_live: 0,
    bytes_live: 0,
    bytes_idle: 0,
    bytes_taken: 0,
    chunks: 0,
    growths: 0,
    refills: 0,
    flushes: 0,
};

impl<M: Mode, S: Source, X> Drop for Slots<M, S, X> {
    fn drop(&mut self) {
        if self.uproot().is_none() {
            // SAFETY: without a core the seed is valid, and dropped only here.
            unsafe { self.seed.get_mut().assume_init_drop() };
        }
    }
}
