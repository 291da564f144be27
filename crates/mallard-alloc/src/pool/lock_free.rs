//! The core of `sync::LockFree`, which is a stack of slot numbers in memory that never grows.

use super::chunk_list::{core_of, ChunkHead, ChunkList};
use super::core_trait::{Core, LiveCursor};
use super::layout::{header_of, ChunkLayout, SlotShape};
use crate::base::growth::Growth;
use crate::base::source::Source;
use crate::base::statistics::{Statistics, Validity};
use crate::loom::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::*};
use crate::threads::lock::Locked;
use crate::threads::tagged_stack::TaggedStack;
use core::ptr::{null_mut, NonNull};

type Block = NonNull<u8>;

/// The core of `sync::LockFree`.
///
/// The first allocation requests the memory of all blocks from the source, under a lock. Later
/// allocations and frees neither lock nor wait nor call the source.
///
/// Each block has a number of 32 bits, which combines the numbers of its chunk and its slot. The
/// free blocks form a linked stack of these numbers. The link of each block is in an array in the
/// header of its chunk. So the pool never reads blocks, and no compare-exchange is wider than a
/// word. While a block is in use, its link is `IN_USE`.
#[doc(hidden)]
#[repr(C)]
#[allow(missing_debug_implementations)] // not a public name
pub struct LockFreeCore<S: Source> {
    layout: ChunkLayout,
    /// How many low bits of a block's number hold its slot.
    slot_bits: u32,
    /// The size of a block in bytes, for statistics.
    block_bytes: usize,
    /// The first byte of the memory, or null before the source has supplied the memory.
    memory: AtomicPtr<u8>,
    /// Whether the source has supplied the memory and all blocks were pushed on the stack.
    is_filled: AtomicBool,
    // This equation holds while no thread is inside a call:
    //
    //   live + |stack|  ==  capacity
    stack: Line<TaggedStack>,
    /// The list of chunks. Its lock is held while the source is called.
    chunks: Locked<ChunkList>,
    source: S,
}

/// A value on a separate pair of cache lines, because processors fetch cache lines in pairs.
#[repr(align(128))]
struct Line<T>(T);

// SAFETY: everything in the chunks that threads share is atomic, and one thread at a time calls the
// source.
unsafe impl<S: Source + Send> Sync for LockFreeCore<S> {}
// SAFETY: nothing in the core depends on the thread that made the core.
unsafe impl<S: Source + Send> Send for LockFreeCore<S> {}

/// The link of a block in use. No link of a free block has this value.
const IN_USE: u32 = u32::MAX;

/// The header of a chunk. The links of the slots follow in memory.
#[repr(C)]
struct Header {
    head: ChunkHead,
    /// The number of the block in slot 0.
    number: u32,
}

#[inline(always)]
fn header_bytes(slots: usize) -> usize {
    size_of::<Header>() + slots * size_of::<AtomicU32>()
}

/// The address of a chunk whose pool has not been dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
struct NumberedChunk(NonNull<Header>);

impl NumberedChunk {
    #[inline(always)]
    fn header<'a>(self) -> &'a Header {
        // SAFETY: the header exists while its pool holds the chunk, and never changes.
        unsafe { self.0.as_ref() }
    }
    #[inline(always)]
    fn number_of(self, slot: usize) -> u32 {
        self.header().number + slot as u32
    }
    fn slots(self) -> impl Iterator<Item = usize> {
        self.header().head.slots.iter()
    }
    fn contains(self, slot: usize) -> bool {
        self.header().head.slots.contains(slot)
    }
    fn capacity(self) -> usize {
        self.header().head.slots.capacity()
    }
    /// Returns the link of a slot. The reference is derived from the chunk's address, because Rust
    /// does not allow a reference to the header to access the links after the header.
    #[inline(always)]
    fn link<'a>(self, slot: usize) -> &'a AtomicU32 {
        // SAFETY: by the layout, the links fit after the header, and `begin` wrote them.
        unsafe { self.0.add(1).cast::<AtomicU32>().add(slot).as_ref() }
    }
    fn is_in_use(self, slot: usize) -> bool {
        self.link(slot).load(Relaxed) == IN_USE
    }
    fn blocks_in_use(self) -> usize {
        self.slots().filter(|&slot| self.is_in_use(slot)).count()
    }
}

/// Computes the layout of chunks. If `shape` is known at compile time, the layout is too.
#[inline(always)]
fn layout_of(shape: SlotShape) -> ChunkLayout {
    // Blocks have at least 8 bytes. Otherwise the links, which have 4 bytes, would use most of the
    // memory in a pool of 1-byte blocks.
    let stride = shape.stride.max(8).next_multiple_of(shape.align);
    ChunkLayout::new(SlotShape { stride, ..shape }, header_bytes)
}

impl<S: Source> LockFreeCore<S> {
    /// Pops a block. `layout` equals the field `layout`. If its value is known at compile time,
    /// fewer loads are between a failed compare-exchange and the next one.
    #[inline(always)]
    fn pop(&self, layout: &ChunkLayout) -> Option<Block> {
        let popped = self.stack.0.pop(|number| {
            let (chunk, slot) = self.locate(number, layout);
            (chunk.link(slot), (chunk, slot))
        });
        popped.map(|(chunk, slot)| {
            chunk.link(slot).store(IN_USE, Relaxed);
            layout.block_at(chunk.0.cast(), slot)
        })
    }

    /// Returns the chunk and the slot of a number that is or was on the stack.
    #[inline(always)]
    fn locate(&self, number: u32, layout: &ChunkLayout) -> (NumberedChunk, usize) {
        let chunk = (number >> self.slot_bits) as usize;
        let slot = number & ((1 << self.slot_bits) - 1);
        let at = self.memory.load(Relaxed).wrapping_add(chunk * layout.shape.bytes);
        // SAFETY: the field `memory` was set before any number was pushed, and this chunk is in
        // that memory.
        let at = unsafe { NonNull::new_unchecked(at) };
        (NumberedChunk(layout.header_of(at).cast()), slot as usize)
    }

    /// Allocates when the stack was empty. Requests the memory from the source if no call has done
    /// so before.
    #[cold]
    #[inline(never)]
    fn refill(&self) -> Option<Block> {
        if !self.is_filled.load(Acquire) {
            let chunks = self.chunks.lock();
            if !self.is_filled.load(Relaxed) {
                self.take_memory(&chunks)?;
            }
        }
        self.pop(&self.layout) // blocks may have been pushed since the first look at the stack
    }

    fn take_memory(&self, chunks: &ChunkList) -> Option<()> {
        let core = (&raw const *self).cast();
        let mut header = chunks.grow(&self.source, 0, core)?;
        let memory = self.layout.base(header);
        let numbers = 1 << self.slot_bits; // how many numbers a chunk has
        let mut first = 0u32;
        loop {
            // SAFETY: the list wrote the `ChunkHead`. By the layout, the header fits in the chunk.
            unsafe { begin(header, first) };
            // A link stores a number plus one, and must be less than `IN_USE`.
            let Some(next) = first.checked_add(numbers).filter(|n| *n < IN_USE - numbers) else {
                break;
            };
            let Some(chunk) = chunks.next_chunk(core) else { break };
            (header, first) = (chunk, next);
        }
        // `Relaxed` is enough, because the numbers are pushed after this store, and a thread that
        // pops a number sees everything that was stored before the push.
        self.memory.store(memory, Relaxed);
        self.push_all(chunks);
        self.is_filled.store(true, Release);
        Some(())
    }

    /// Pushes all blocks on the empty stack. The first block is on top afterwards.
    fn push_all(&self, chunks: &ChunkList) {
        let mut ends: Option<(u32, &AtomicU32)> = None;
        for_each_chunk(chunks, |chunk| {
            for slot in chunk.slots() {
                let (number, link) = (chunk.number_of(slot), chunk.link(slot));
                let top = ends.map_or(number, |(top, last)| {
                    last.store(number + 1, Relaxed);
                    top
                });
                ends = Some((top, link));
            }
        });
        if let Some((top, last)) = ends {
            self.stack.0.push(top, last);
        }
    }

    /// Discards the memory without returning it. Requires that no other thread is inside a call of
    /// the pool.
    fn forget(&self) {
        self.stack.0.clear();
        self.memory.store(null_mut(), Relaxed);
        self.is_filled.store(false, Relaxed);
    }

    fn give_all(&self) {
        let chunks = self.chunks.lock();
        self.forget();
        chunks.release(&self.source);
    }
}

/// Writes the part of a chunk's header that follows the `ChunkHead`.
///
/// # Safety
/// A `ChunkHead` is written at `header`, and nothing after it is written yet.
unsafe fn begin(header: NonNull<u8>, number: u32) {
    let chunk = NumberedChunk(header.cast());
    // SAFETY: by the layout, the header fits in the chunk. No other thread has the chunk's address.
    unsafe {
        let h = chunk.0.as_ptr();
        (&raw mut (*h).number).write(number);
        let links = chunk.0.add(1).cast::<AtomicU32>();
        (0..(*h).head.slots.end()).for_each(|slot| links.add(slot).write(AtomicU32::new(0)));
    }
}

fn for_each_chunk(chunks: &ChunkList, mut f: impl FnMut(NumberedChunk)) {
    chunks.for_each(|header| f(NumberedChunk(header.cast())));
}

// SAFETY: a block in use is a slot whose number is not on the stack, and only one thread pops a
// number. All threads may call the `&self` functions.
unsafe impl<S: Source> Core<S> for LockFreeCore<S> {
    fn new(shape: SlotShape, growth: Growth, source: S) -> Self {
        let layout = layout_of(shape);
        let slots = layout.slots(0, layout.shape.bytes, usize::MAX).end();
        Self {
            layout,
            slot_bits: slots.max(2).next_power_of_two().trailing_zeros(),
            block_bytes: shape.stride,
            memory: AtomicPtr::new(null_mut()),
            is_filled: AtomicBool::new(false),
            stack: Line(TaggedStack::new()),
            chunks: Locked::new(ChunkList::new(layout, growth)),
            source,
        }
    }

    fn bytes_for(shape: SlotShape, count: usize) -> usize {
        layout_of(shape).bytes_for(count)
    }

    #[inline]
    fn try_allocate(&self) -> Option<Block> {
        self.pop(&self.layout).or_else(|| self.refill())
    }
    #[inline]
    fn try_allocate_of(&self, shape: &SlotShape) -> Option<Block> {
        self.pop(&layout_of(*shape)).or_else(|| self.refill())
    }

    #[inline]
    unsafe fn deallocate(&self, block: Block) {
        // SAFETY: the caller guarantees that the block may be freed.
        unsafe { self.deallocate_at(self.layout.place_of(block)) }
    }
    #[inline(always)]
    fn place_of(block: Block, shape: &SlotShape) -> (NonNull<u8>, usize) {
        layout_of(*shape).place_of(block)
    }
    #[inline]
    unsafe fn deallocate_at(&self, (header, slot): (NonNull<u8>, usize)) {
        let chunk = NumberedChunk(header.cast());
        self.stack.0.push(chunk.number_of(slot), chunk.link(slot));
    }

    #[inline(always)]
    unsafe fn of<'a>(block: Block, shape: &SlotShape) -> &'a Self {
        // SAFETY: the header of a block in use points to its core.
        unsafe { &*core_of(header_of(block, shape)).cast() }
    }

    fn next_live(&mut self, cursor: &mut LiveCursor) -> Option<Block> {
        let chunks = self.chunks.lock();
        let mut header = NonNull::new(cursor.chunk);
        loop {
            if let Some(header) = header {
                let chunk = NumberedChunk(header.cast());
                let mut slots = chunk.slots().skip_while(|&slot| slot < cursor.slot);
                if let Some(slot) = slots.find(|&slot| chunk.is_in_use(slot)) {
                    cursor.slot = slot + 1;
                    return Some(self.layout.block_at(header, slot));
                }
            }
            header = Some(chunks.next(cursor)?);
        }
    }

    fn reset(&mut self) {
        self.stack.0.clear();
        self.push_all(&self.chunks.lock());
    }

    fn release(&mut self) {
        self.give_all();
    }

    fn trim(&mut self, keep: usize) {
        let chunks = self.chunks.lock();
        let is_idle = |header: NonNull<u8>| NumberedChunk(header.cast()).blocks_in_use() == 0;
        chunks.give_idle(&self.source, keep, is_idle);
        if chunks.is_empty() {
            self.forget();
        }
    }

    fn statistics(&self) -> Statistics {
        let chunks = self.chunks.lock();
        let (mut live, mut capacity, mut count) = (0, 0, 0);
        for_each_chunk(&chunks, |chunk| {
            live += chunk.blocks_in_use();
            capacity += chunk.capacity();
            count += 1;
        });
        let growths = chunks.growth.steps();
        Statistics {
            blocks_live: live,
            bytes_live: live * self.block_bytes,
            bytes_idle: (capacity - live) * self.block_bytes,
            bytes_taken: chunks.growth.taken(),
            chunks: count,
            growths,
            refills: growths,
            flushes: 0,
        }
    }

    fn classify(&self, p: *const u8) -> Validity {
        let chunks = self.chunks.lock();
        let Some(header) = chunks.find(p) else {
            return Validity::Miss;
        };
        let chunk = NumberedChunk(header.cast());
        let slot = self.layout.slot_at(header, p);
        match slot.is_some_and(|slot| chunk.contains(slot) && chunk.is_in_use(slot)) {
            true => Validity::Valid,
            false => Validity::Invalid,
        }
    }

    fn source(&self) -> &S {
        &self.source
    }
}

impl<S: Source> Drop for LockFreeCore<S> {
    fn drop(&mut self) {
        self.give_all();
    }
}
