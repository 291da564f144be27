//! The adaptor that finds memory errors of an allocator's callers.

use crate::adapt::prelude::*;
use crate::base::bits::{align_up, dangling, layout as layout_of};
use crate::debug::fault::{panic_at_faults, Fault, FaultKind, FaultyBlock};
use alloc::collections::{BTreeMap, VecDeque};
use core::cell::RefCell;

/// An adaptor that reports memory errors in the code that uses an allocator.
///
/// ```should_panic
/// use mallard::{BlockAllocator, Checked, Multipool};
/// use std::alloc::Layout;
/// let orders = Checked::new("orders", Multipool::new());
/// let block = orders.allocate(Layout::new::<u64>());
/// // SAFETY: broken on purpose: the second free is the error.
/// unsafe {
///     orders.deallocate(block, Layout::new::<u64>());
///     orders.deallocate(block, Layout::new::<u64>()); // mallard: double free of ... in "orders"
/// }
/// ```
///
/// `Checked` reports these errors:
///
/// - a double free, a free of an address that is not a block, and a free with another layout than
///   the allocation. They are reported at the free.
/// - a write before or after a block, or into a freed block. It is reported when the block is
///   freed, when it leaves the quarantine, at `verify`, at `reset`, and when the allocator is
///   dropped.
/// - a leaked block. It is reported when the allocator is dropped.
///
/// The handler is called with each error ([`Fault`]). The default handler panics. If the handler
/// returns, the program continues. Then a block freed with another layout is freed with the layout
/// of its allocation, any other invalid free is ignored, and overwritten redzones are filled again.
///
/// A freed block is filled with a pattern and put in quarantine. When the blocks in quarantine
/// together have more than 64 KiB, the oldest block leaves the quarantine. When the wrapped
/// allocator is exhausted, all blocks leave the quarantine. A second free of a block that has left
/// the quarantine is reported as a free of a foreign address.
///
/// `Checked` is for tests. Each block is allocated with a redzone of at least 16 bytes before and
/// after it. So a wrapped pool needs larger blocks, and no block grows in place. The records of
/// blocks are on the global heap, outside the blocks. If that heap has no memory, the program
/// aborts. Blocks of size 0 are not checked. `Checked` is for one thread at a time, so several
/// threads need a [`Synchronized`](crate::Synchronized) around it. An allocation and its free
/// together cost about 100 ns, because each of them fills the block with a pattern.
pub struct Checked<A: BlockAllocator, H: Fn(&Fault<'_>) = fn(&Fault<'_>)> {
    inner: A,
    name: &'static str,
    handler: H,
    leaks: bool,
    quarantine_max: usize,
    records: RefCell<Records>,
}

/// The records of all blocks that are in use or in quarantine. The field `quarantine` contains the
/// addresses of the blocks in quarantine.
#[derive(Default)]
struct Records {
    blocks: BTreeMap<usize, Record>, // by address
    quarantine: VecDeque<usize>,     // the oldest first
    quarantine_bytes: usize,
    allocations: u64,
}

/// The record for one block and the memory allocated for it, which is called its room:
///
/// ```text
///     room | redzone | block | redzone |
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

// SAFETY: the records contain addresses of memory that belongs to the allocator, and that moves to
// the other thread together with the allocator.
unsafe impl<A: BlockAllocator + Send, H: Fn(&Fault<'_>) + Send> Send for Checked<A, H> {}

const REDZONE_BYTES: usize = 16;
const ROOM_ALIGN: usize = 8;
const LEAKS_SHOWN: usize = 8;

// No fill value looks like valid data, because each is odd (no pointer), large (no count), and not
// ASCII.
const FILL_FRESH: u8 = 0xc9;
const FILL_FREED: u8 = 0xdb;
const FILL_REDZONE: u8 = 0xf5;

impl Record {
    fn block(&self) -> NonNull<u8> {
        // SAFETY: the block is inside `room`, the memory that was allocated for it.
        unsafe { self.room.add(self.front) }
    }
    fn describe(&self) -> FaultyBlock {
        let data = self.block().as_ptr();
        FaultyBlock { data, layout: self.layout, number: self.number }
    }
    fn fill(&self, value: u8) {
        // SAFETY: the block has `layout.size()` bytes, and no caller uses them, because the block
        // is not yet returned to the caller, or is already freed.
        unsafe { self.block().write_bytes(value, self.layout.size()) }
    }
    /// Returns the offsets (from the first byte of `room`) and sizes of the two redzones.
    fn redzones(&self) -> [(usize, usize); 2] {
        let end = self.front + self.layout.size();
        [(0, self.front), (end, self.room_layout.size() - end)]
    }
    fn fill_redzones(&self) {
        for (offset, bytes) in self.redzones() {
            // SAFETY: the bytes of a redzone are inside `room` and not in the block.
            unsafe { self.room.add(offset).write_bytes(FILL_REDZONE, bytes) }
        }
    }
    /// Returns the first byte that is not `value`, in a range of the memory around the block.
    fn first_wrong(&self, (offset, bytes): (usize, usize), value: u8) -> Option<*const u8> {
        // This function uses raw pointers and not a slice, because the caller may hold a reference
        // into the block.
        (offset..offset + bytes)
            // SAFETY: all bytes of the range are inside `room`.
            .map(|at| unsafe { self.room.add(at) })
            // SAFETY: the bytes were filled earlier, so they are initialised.
            .find(|at| unsafe { at.read() } != value)
            .map(|at| at.as_ptr().cast_const())
    }
}

impl<A: BlockAllocator> Checked<A> {
    /// Makes an adaptor that checks the calls to `inner`, and panics at an error. `name` is the
    /// allocator's name in messages.
    pub const fn new(name: &'static str, inner: A) -> Self {
        Self::with_handler(name, inner, panic_at_faults)
    }
}

impl<A: BlockAllocator, H: Fn(&Fault<'_>)> Checked<A, H> {
    /// Makes an adaptor like `new`, but calls `handler` at each error. The handler must not call
    /// this allocator.
    ///
    /// ```
    /// use mallard::{print_faults, Checked, Multipool};
    /// let orders = Checked::with_handler("orders", Multipool::new(), print_faults);
    /// orders.verify();
    /// ```
    pub const fn with_handler(name: &'static str, inner: A, handler: H) -> Self {
        let records = RefCell::new(Records {
            blocks: BTreeMap::new(),
            quarantine: VecDeque::new(),
            quarantine_bytes: 0,
            allocations: 0,
        });
        Self { inner, name, handler, leaks: true, quarantine_max: 1 << 16, records }
    }

    /// Limits the size of the freed blocks that stay in quarantine to `bytes` bytes together.
    pub const fn quarantine(mut self, bytes: usize) -> Self {
        self.quarantine_max = bytes;
        self
    }

    /// Disables leak reports, for blocks that an arena frees together.
    pub const fn without_leaks(mut self) -> Self {
        self.leaks = false;
        self
    }

    /// Returns the wrapped allocator.
    pub const fn inner(&self) -> &A {
        &self.inner
    }

    /// Looks for overwritten bytes in all redzones and in the quarantine.
    pub fn verify(&self) {
        let next = |after: Option<usize>| {
            let records = self.records.borrow();
            let from = after.map_or(0, |address| address + 1);
            records.blocks.range(from..).next().map(|(&address, &record)| (address, record))
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

    /// Reports overwritten bytes of a block, and repairs them so that each error is reported only
    /// once.
    fn inspect(&self, record: &Record) {
        let [front, back] =
            record.redzones().map(|redzone| record.first_wrong(redzone, FILL_REDZONE));
        record.fill_redzones();
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

    /// Allocates memory for a block and its redzones. If there is no memory, empties the quarantine
    /// and tries again.
    fn take_room(&self, room: Layout) -> Option<NonNull<u8>> {
        self.inner.try_allocate(room).or_else(|| {
            self.shrink_quarantine(0);
            self.inner.try_allocate(room)
        })
    }

    /// Frees the oldest blocks in quarantine until at most `most` bytes are left. Each block is
    /// inspected before it is freed.
    fn shrink_quarantine(&self, most: usize) {
        loop {
            let oldest = self.records.borrow_mut().forget_oldest(most);
            let Some(record) = oldest else { return };
            let back = FreeRoom { to: &self.inner, record };
            self.inspect(&back.record);
        }
    }

    /// Checks a free and reports its error, if any. Then moves the block into the quarantine.
    /// Returns `None` if the free must have no effect.
    fn validate_free(&self, block: NonNull<u8>, said: Layout) -> Option<Record> {
        let address = block.addr().get();
        let found = self.records.borrow().around(address);
        let at = block.as_ptr().cast_const();
        let kind = match &found {
            None => FaultKind::ForeignFree,
            Some(r) if r.block() != block && r.is_free => FaultKind::ForeignFree,
            Some(r) if r.block() != block => FaultKind::InteriorFree,
            Some(r) if r.is_free => FaultKind::DoubleFree,
            Some(_) => {
                let record = self.records.borrow_mut().quarantine(address)?;
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
            let records = self.records.borrow();
            records.blocks.values().filter(|r| !r.is_free).map(Record::describe).collect()
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

    /// Removes all records, because the wrapped allocator is about to free the blocks.
    fn forget_all(&self) {
        self.verify();
        let allocations = self.records.borrow().allocations;
        *self.records.borrow_mut() = Records { allocations, ..Records::default() };
    }
}

/// A guard that frees the memory of a block and its redzones when the guard is dropped, also if the
/// handler panics.
struct FreeRoom<'a, A: BlockAllocator> {
    to: &'a A,
    record: Record,
}

impl<A: BlockAllocator> Drop for FreeRoom<'_, A> {
    fn drop(&mut self) {
        // SAFETY: the memory is from this allocator, and no record of the block is left.
        unsafe { self.to.deallocate(self.record.room, self.record.room_layout) }
    }
}

impl Records {
    fn add(
        &mut self,
        room: NonNull<u8>,
        room_layout: Layout,
        front: usize,
        layout: Layout,
    ) -> Record {
        self.allocations += 1;
        let number = self.allocations;
        let record = Record { room, room_layout, front, layout, number, is_free: false };
        self.blocks.insert(record.block().addr().get(), record);
        record
    }

    /// Returns the block that contains an address.
    fn around(&self, address: usize) -> Option<Record> {
        let (&begin, record) = self.blocks.range(..=address).next_back()?;
        (address - begin < record.layout.size()).then_some(*record)
    }

    /// Moves a block in use into the quarantine.
    fn quarantine(&mut self, address: usize) -> Option<Record> {
        let record = self.blocks.get_mut(&address)?;
        record.is_free = true;
        self.quarantine.push_back(address);
        self.quarantine_bytes += record.room_layout.size();
        Some(*record)
    }

    fn forget_oldest(&mut self, most: usize) -> Option<Record> {
        if self.quarantine_bytes <= most {
            return None;
        }
        let record = self.blocks.remove(&self.quarantine.pop_front()?)?;
        self.quarantine_bytes -= record.room_layout.size();
        Some(record)
    }
}

// SAFETY: each block lies inside a block of `inner`.
unsafe impl<A: BlockAllocator, H: Fn(&Fault<'_>)> BlockAllocator for Checked<A, H> {
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout));
        }
        let align = layout.align().max(ROOM_ALIGN);
        let front = align_up(REDZONE_BYTES, align);
        let bytes = front.checked_add(layout.size())?;
        let bytes = bytes.checked_add(REDZONE_BYTES + ROOM_ALIGN - 1)? & !(ROOM_ALIGN - 1);
        let room_layout = layout_of(bytes, align)?;
        let room = self.take_room(room_layout)?;
        let record = self.records.borrow_mut().add(room, room_layout, front, layout);
        record.fill_redzones();
        record.fill(FILL_FRESH);
        Some(record.block())
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() == 0 {
            return;
        }
        let Some(record) = self.validate_free(block, layout) else { return };
        record.fill(FILL_FREED);
        self.inspect(&record);
        self.shrink_quarantine(self.quarantine_max);
    }
}

// SAFETY: each block lies inside a block of `inner`.
unsafe impl<A: BlockAllocator + Owns, H: Fn(&Fault<'_>)> Owns for Checked<A, H> {
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

/// Reports leaks. Leaked blocks stay allocated, because something may still use them.
impl<A: BlockAllocator, H: Fn(&Fault<'_>)> Drop for Checked<A, H> {
    fn drop(&mut self) {
        #[cfg(feature = "std")]
        if std::thread::panicking() {
            return; // no report during a panic, because the cause of the panic matters more
        }
        self.verify();
        self.shrink_quarantine(0);
        if self.leaks {
            self.report_leaks();
        }
    }
}
