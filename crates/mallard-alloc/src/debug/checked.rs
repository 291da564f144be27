//! An allocator that finds the bugs of its callers.

use crate::adapt::prelude::*;
use crate::base::bits::{align_up, dangling, layout as layout_of};
use crate::debug::fault::{panic_at_faults, Fault, FaultKind, FaultyBlock};
use alloc::collections::{BTreeMap, VecDeque};
use core::cell::RefCell;

/// Any allocator, and what its callers do wrong.
///
/// ```should_panic
/// use mallard::{BlockAllocator, Checked, Multipool};
/// use std::alloc::Layout;
/// let orders = Checked::new("orders", Multipool::new());
/// let block = orders.allocate(Layout::new::<u64>());
/// // SAFETY: not at all.
/// unsafe {
///     orders.deallocate(block, Layout::new::<u64>());
///     orders.deallocate(block, Layout::new::<u64>()); // mallard: double free of ... in "orders"
/// }
/// ```
///
/// A double free, a free of what is no block, one with another layout than the block was
/// allocated with, a write behind or in front of a block, or into a freed one, and what is
/// never freed. Frees are judged at once; writes when the block is freed, when it leaves the
/// quarantine, at `verify`, at `reset` and at the end. Who hears of it, the handler says; by
/// default that panics. If it returns, a bad free has changed nothing, a wrong layout is put
/// right, and what was overwritten is mended.
///
/// A freed block stays in quarantine, filled, until 64 KiB are there or what is wrapped has no
/// memory left; a double free of it is told exactly, a later one as that of a stranger.
///
/// Each block is asked for with 16 bytes or more on either side, so a pool that is wrapped wants
/// larger blocks, and no block grows in place. The books are on the global heap, apart from the
/// blocks, hence safe from those who overwrite; where that refuses, the program ends. So it is
/// for tests. Blocks without bytes are not looked at. One thread at a time, or a
/// [`Synchronized`](crate::Synchronized) around it. A pair of calls costs about 100 ns, and the
/// bytes of the block written twice.
pub struct Checked<A: BlockAllocator, H: Fn(&Fault<'_>) = fn(&Fault<'_>)> {
    inner: A,
    name: &'static str,
    handler: H,
    leaks: bool,
    quarantine_max: usize,
    books: RefCell<Books>,
}

/// Kept blocks are in `blocks` and in `kept`, those in use in `blocks` alone.
#[derive(Default)]
struct Books {
    blocks: BTreeMap<usize, Record>, // by address
    kept: VecDeque<usize>,           // the oldest first
    kept_bytes: usize,
    opened: u64,
}

/// ```text
///     room | fence | block | fence |
/// ```
#[derive(Clone, Copy)]
struct Record {
    room: NonNull<u8>,
    room_layout: Layout,
    front: usize,
    layout: Layout,
    number: u64,
    is_free: bool,
}

// SAFETY: the books are only addresses of memory that moves with the allocator.
unsafe impl<A: BlockAllocator + Send, H: Fn(&Fault<'_>) + Send> Send for Checked<A, H> {}

const FENCE: usize = 16;
const GRANULE: usize = 8;
const LEAKS_SHOWN: usize = 8;

// Odd, so no pointer; large, so no count; not a character of ASCII.
const FILL_FRESH: u8 = 0xc9;
const FILL_FREED: u8 = 0xdb;
const FILL_FENCE: u8 = 0xf5;

impl Record {
    fn block(&self) -> NonNull<u8> {
        // SAFETY: the block is in the room.
        unsafe { self.room.add(self.front) }
    }
    fn describe(&self) -> FaultyBlock {
        let data = self.block().as_ptr();
        FaultyBlock { data, layout: self.layout, number: self.number }
    }
    fn fill(&self, value: u8) {
        // SAFETY: the block has that many bytes, and its caller does not have it yet, or any
        // more.
        unsafe { self.block().write_bytes(value, self.layout.size()) }
    }
    /// From the room's first byte.
    fn fences(&self) -> [(usize, usize); 2] {
        let end = self.front + self.layout.size();
        [(0, self.front), (end, self.room_layout.size() - end)]
    }
    fn build_fences(&self) {
        for (offset, bytes) in self.fences() {
            // SAFETY: bytes of the room that are not the block's.
            unsafe { self.room.add(offset).write_bytes(FILL_FENCE, bytes) }
        }
    }
    /// The first byte that is not `value`.
    fn first_wrong(&self, (offset, bytes): (usize, usize), value: u8) -> Option<*const u8> {
        // By pointers, not as a slice: the caller of a block may hold it as he likes.
        (offset..offset + bytes)
            // SAFETY: bytes of the room that were filled.
            .map(|at| unsafe { self.room.add(at) })
            // SAFETY: the same.
            .find(|at| unsafe { at.read() } != value)
            .map(|at| at.as_ptr().cast_const())
    }
}

impl<A: BlockAllocator> Checked<A> {
    /// Watches `inner`, which is called `name` in messages. Panics at faults.
    pub const fn new(name: &'static str, inner: A) -> Self {
        Self::with_handler(name, inner, panic_at_faults)
    }
}

impl<A: BlockAllocator, H: Fn(&Fault<'_>)> Checked<A, H> {
    /// The same, and `handler` hears of faults. It must not call this allocator.
    pub const fn with_handler(name: &'static str, inner: A, handler: H) -> Self {
        let books =
            Books { blocks: BTreeMap::new(), kept: VecDeque::new(), kept_bytes: 0, opened: 0 };
        let books = RefCell::new(books);
        Self { inner, name, handler, leaks: true, quarantine_max: 1 << 16, books }
    }

    /// The most bytes of freed blocks that are kept.
    pub const fn quarantine(mut self, bytes: usize) -> Self {
        self.quarantine_max = bytes;
        self
    }

    /// Does not report what is in use at the end: for what an arena lets die.
    pub const fn without_leaks(mut self) -> Self {
        self.leaks = false;
        self
    }

    /// What is wrapped.
    pub const fn inner(&self) -> &A {
        &self.inner
    }

    /// Looks for overwritten bytes around all blocks and in the quarantine.
    pub fn verify(&self) {
        let next = |after: Option<usize>| {
            let books = self.books.borrow();
            let from = after.map_or(0, |address| address + 1);
            books.blocks.range(from..).next().map(|(&address, &record)| (address, record))
        };
        let mut at = next(None);
        while let Some((address, record)) = at {
            self.inspect(&record);
            at = next(Some(address));
        }
    }

    fn report(&self, kind: FaultKind, at: *const u8, of: Option<&Record>, said: Option<Layout>) {
        let block = of.map(Record::describe);
        (self.handler)(&Fault {
            kind,
            allocator: self.name,
            at,
            said,
            count: 0,
            bytes: 0,
            blocks: block.as_slice(),
        });
    }

    /// What is reported is mended, so it is not reported again.
    fn inspect(&self, record: &Record) {
        let [front, back] = record.fences().map(|fence| record.first_wrong(fence, FILL_FENCE));
        record.build_fences();
        let block = (record.front, record.layout.size());
        let freed = if record.is_free { record.first_wrong(block, FILL_FREED) } else { None };
        if freed.is_some() {
            record.fill(FILL_FREED);
        }
        let found = [
            (front, FaultKind::Underrun),
            (back, FaultKind::Overrun),
            (freed, FaultKind::WriteAfterFree),
        ];
        for (at, kind) in found {
            if let Some(at) = at {
                self.report(kind, at, Some(record), None);
            }
        }
    }

    /// Before it is refused, the quarantine goes.
    fn take_room(&self, room: Layout) -> Option<NonNull<u8>> {
        self.inner.try_allocate(room).or_else(|| {
            self.shrink_quarantine(0);
            self.inner.try_allocate(room)
        })
    }

    /// The last look at a block, and at what is around it.
    fn shrink_quarantine(&self, most: usize) {
        loop {
            let oldest = self.books.borrow_mut().forget_oldest(most);
            let Some(record) = oldest else { return };
            let back = Back { to: &self.inner, record };
            self.inspect(&back.record);
        }
    }

    /// The block that a free is of; `None` when that changes nothing.
    fn dismiss(&self, block: NonNull<u8>, said: Layout) -> Option<Record> {
        let address = block.addr().get();
        let found = self.books.borrow().around(address);
        let at = block.as_ptr().cast_const();
        let kind = match &found {
            None => FaultKind::ForeignFree,
            Some(r) if r.block() != block && r.is_free => FaultKind::ForeignFree,
            Some(r) if r.block() != block => FaultKind::InteriorFree,
            Some(r) if r.is_free => FaultKind::DoubleFree,
            Some(_) => {
                let record = self.books.borrow_mut().retire(address)?;
                if record.layout != said {
                    self.report(FaultKind::WrongLayout, at, Some(&record), Some(said));
                }
                return Some(record);
            }
        };
        let of = found.filter(|_| kind != FaultKind::ForeignFree);
        self.report(kind, at, of.as_ref(), None);
        None
    }

    fn report_leaks(&self) {
        let mut live: alloc::vec::Vec<FaultyBlock> = {
            let books = self.books.borrow();
            books.blocks.values().filter(|r| !r.is_free).map(Record::describe).collect()
        };
        live.sort_by_key(|block| block.number);
        if let Some(first) = live.first() {
            (self.handler)(&Fault {
                kind: FaultKind::Leak,
                allocator: self.name,
                at: first.data,
                said: None,
                count: live.len(),
                bytes: live.iter().map(|block| block.layout.size()).sum(),
                blocks: &live[..live.len().min(LEAKS_SHOWN)],
            });
        }
    }

    /// What is wrapped frees all blocks itself.
    fn forget_all(&self) {
        self.verify();
        let opened = self.books.borrow().opened;
        *self.books.borrow_mut() = Books { opened, ..Books::default() };
    }
}

/// Goes back to where it is from, when the handler panics, too.
struct Back<'a, A: BlockAllocator> {
    to: &'a A,
    record: Record,
}

impl<A: BlockAllocator> Drop for Back<'_, A> {
    fn drop(&mut self) {
        // SAFETY: it is from there, and the books have forgotten it.
        unsafe { self.to.deallocate(self.record.room, self.record.room_layout) }
    }
}

impl Books {
    fn open(
        &mut self,
        room: NonNull<u8>,
        room_layout: Layout,
        front: usize,
        layout: Layout,
    ) -> Record {
        self.opened += 1;
        let number = self.opened;
        let record = Record { room, room_layout, front, layout, number, is_free: false };
        self.blocks.insert(record.block().addr().get(), record);
        record
    }

    /// The block that begins at or before an address, if it reaches there.
    fn around(&self, address: usize) -> Option<Record> {
        let (&begin, record) = self.blocks.range(..=address).next_back()?;
        (address - begin < record.layout.size()).then_some(*record)
    }

    /// From those in use to those that are kept.
    fn retire(&mut self, address: usize) -> Option<Record> {
        let record = self.blocks.get_mut(&address)?;
        record.is_free = true;
        self.kept.push_back(address);
        self.kept_bytes += record.room_layout.size();
        Some(*record)
    }

    fn forget_oldest(&mut self, most: usize) -> Option<Record> {
        if self.kept_bytes <= most {
            return None;
        }
        let record = self.blocks.remove(&self.kept.pop_front()?)?;
        self.kept_bytes -= record.room_layout.size();
        Some(record)
    }
}

// SAFETY: blocks are inside of those of the allocator below.
unsafe impl<A: BlockAllocator, H: Fn(&Fault<'_>)> BlockAllocator for Checked<A, H> {
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout));
        }
        let align = layout.align().max(GRANULE);
        let front = align_up(FENCE, align);
        let bytes = front.checked_add(layout.size())?.checked_add(FENCE + GRANULE - 1)?;
        let room_layout = layout_of(bytes & !(GRANULE - 1), align)?;
        let room = self.take_room(room_layout)?;
        let record = self.books.borrow_mut().open(room, room_layout, front, layout);
        record.build_fences();
        record.fill(FILL_FRESH);
        Some(record.block())
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() == 0 {
            return;
        }
        let Some(record) = self.dismiss(block, layout) else { return };
        record.fill(FILL_FREED);
        self.inspect(&record);
        self.shrink_quarantine(self.quarantine_max);
    }
}

// SAFETY: blocks lie in blocks of `inner`.
unsafe impl<A: BlockAllocator + Owning, H: Fn(&Fault<'_>)> Owning for Checked<A, H> {
    fn owns(&self, p: *const u8) -> bool {
        self.inner.owns(p)
    }
}

impl<A: BlockAllocator + Resettable, H: Fn(&Fault<'_>)> Resettable for Checked<A, H> {
    fn reset(&mut self) {
        self.forget_all();
        self.inner.reset();
    }
    fn release(&mut self) {
        self.forget_all();
        self.inner.release();
    }
    fn trim(&mut self, keep: usize) {
        self.shrink_quarantine(0);
        self.inner.trim(keep);
    }
}

impl<A: BlockAllocator + Measured, H: Fn(&Fault<'_>)> Measured for Checked<A, H> {
    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }
}

impl<A: BlockAllocator, H: Fn(&Fault<'_>)> core::fmt::Debug for Checked<A, H> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Checked").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What leaks stays where it is: somebody may still use it.
impl<A: BlockAllocator, H: Fn(&Fault<'_>)> Drop for Checked<A, H> {
    fn drop(&mut self) {
        #[cfg(feature = "std")]
        if std::thread::panicking() {
            return; // the first fault is the one to look at
        }
        self.verify();
        self.shrink_quarantine(0);
        if self.leaks {
            self.report_leaks();
        }
    }
}
