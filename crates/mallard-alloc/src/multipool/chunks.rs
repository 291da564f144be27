//! A multipool's list of chunks. A list contains the chunks of one size class, or the bootstrap
//! slabs.

use super::list::{Elements, Link};
use crate::base::bits::{align_up, layout};
use crate::{Chunk as SourceChunk, Source};
use core::cell::Cell;
use core::ops::Deref;
use core::ptr::{null_mut, NonNull};

/// The header at the start of a chunk. The blocks follow.
#[repr(C)]
pub(super) struct Header {
    link: Link,
    /// The size of the chunk in bytes, as the source supplied the chunk.
    pub(super) bytes: usize,
    /// The end address of the blocks that were cut.
    pub(super) cut: Cell<*mut u8>,
    /// The end address of the memory for blocks.
    pub(super) room_end: Cell<*mut u8>,
    /// Number of blocks in use, while `trim` counts them.
    in_use: Cell<usize>,
}

/// A chunk in a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk(NonNull<Header>);

impl Deref for Chunk {
    type Target = Header;
    fn deref(&self) -> &Header {
        // SAFETY: a chunk of a list has a header. The fields that change are cells, except the
        // link, which only `Chunks` uses.
        unsafe { self.0.as_ref() }
    }
}

impl Chunk {
    /// Alignment of every chunk.
    pub(super) const ALIGN: usize = align_of::<Header>();
    pub(super) const HEADER_BYTES: usize = size_of::<Header>();

    fn data(self) -> *mut u8 {
        self.0.as_ptr().cast()
    }
    /// Returns the first address after the header that has this alignment.
    pub(super) fn begin(self, align: usize) -> *mut u8 {
        self.data().map_addr(|at| align_up(at + Self::HEADER_BYTES, align))
    }
    pub(super) fn end(self) -> *mut u8 {
        self.data().wrapping_add(self.bytes)
    }
    pub(super) fn contains(self, p: *const u8) -> bool {
        p.addr().wrapping_sub(self.data().addr()) < self.bytes
    }
    /// Returns the size of all blocks that were cut, in bytes. The first block has the alignment
    /// `align`.
    pub(super) fn cut_bytes(self, align: usize) -> usize {
        self.cut.get().addr() - self.begin(align).addr()
    }

    pub(super) fn set_in_use(self, blocks: usize) {
        self.in_use.set(blocks);
    }
    pub(super) fn take_off(self, blocks: usize) {
        self.in_use.set(self.in_use.get() - blocks);
    }
    pub(super) fn is_idle(self) -> bool {
        self.in_use.get() == 0
    }
}

/// A list of chunks, the oldest first.
///
/// ```text
///     first -> ... -> current | -> ... -> null
///     blocks were cut         | no block was cut yet
/// ```
pub(super) struct Chunks {
    first: Cell<*mut Header>,
    current: Cell<*mut Header>,
}

impl Chunks {
    pub(super) const fn new() -> Self {
        Self { first: Cell::new(null_mut()), current: Cell::new(null_mut()) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.get().is_null()
    }
    pub(super) fn current(&self) -> Option<Chunk> {
        NonNull::new(self.current.get()).map(Chunk)
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = Chunk> {
        // SAFETY: `first` is the start of a list. The callers return a chunk of the list to the
        // source only after the iterator has passed the chunk.
        unsafe { Elements::from(self.first.get().cast()) }.map(|link| Chunk(link.cast()))
    }
    /// Finds the chunk that contains `p`. O(chunks).
    pub(super) fn find(&self, p: *const u8) -> Option<Chunk> {
        self.iter().find(|chunk| chunk.contains(p))
    }
    /// Returns a function that finds the chunk of a block. The function is fast if neighbouring
    /// blocks are looked up one after the other.
    pub(super) fn finder(&self) -> impl FnMut(NonNull<u8>) -> Option<Chunk> + '_ {
        let mut last = None::<Chunk>;
        move |block| {
            let block = block.as_ptr().cast_const();
            last = last.filter(|chunk| chunk.contains(block)).or_else(|| self.find(block));
            last
        }
    }

    /// Makes the chunk after the current chunk the current one, and returns it. Returns `None` if
    /// there is no later chunk.
    pub(super) fn advance(&self) -> Option<Chunk> {
        let next = match NonNull::new(self.current.get()) {
            None => self.first.get(),
            // SAFETY: `current` is a chunk of the list.
            Some(current) => unsafe { current.as_ref() }.link.next.cast(),
        };
        let next = NonNull::new(next)?;
        self.current.set(next.as_ptr());
        Some(Chunk(next))
    }
    /// Makes the first chunk the one that `advance` returns next.
    pub(super) fn rewind(&self) {
        self.current.set(null_mut());
    }

    /// Adds a chunk at the end of the list. No blocks are cut from the chunk yet.
    ///
    /// # Safety
    /// The source has just supplied `taken`, with the alignment `Chunk::ALIGN`, and `taken` is
    /// larger than a header.
    pub(super) unsafe fn add(&self, taken: SourceChunk) -> Chunk {
        let chunk = Chunk(taken.data.cast());
        // SAFETY: the caller guarantees that the memory is new, aligned, and larger than a header.
        unsafe {
            chunk.0.write(Header {
                link: Link { next: null_mut() },
                bytes: taken.layout.size(),
                cut: Cell::new(null_mut()),
                room_end: Cell::new(null_mut()),
                in_use: Cell::new(0),
            });
        }
        self.append(chunk);
        chunk
    }

    fn append(&self, chunk: Chunk) {
        let from = if self.current.get().is_null() { self.first.get() } else { self.current.get() };
        let mut end = from;
        // SAFETY: the pointers point to chunks of the list.
        unsafe {
            while !end.is_null() && !(*end).link.next.is_null() {
                end = (*end).link.next.cast();
            }
            match end.is_null() {
                true => self.first.set(chunk.0.as_ptr()),
                false => (*end).link.next = chunk.0.as_ptr().cast(),
            }
        }
    }

    /// Returns the idle chunks to the source, and calls `gave` with the size of each chunk. The
    /// other chunks keep their order.
    pub(super) fn give_idle<S: Source>(&self, source: &S, mut gave: impl FnMut(usize)) {
        let (chunks, current) = (self.iter(), self.current());
        let (mut last, mut last_cut) = (null_mut::<Header>(), null_mut::<Header>());
        let mut is_cut = current.is_some();
        self.first.set(null_mut());
        for chunk in chunks {
            let was_current = Some(chunk) == current;
            if chunk.is_idle() {
                let bytes = chunk.bytes;
                gave(bytes);
                if let Some(layout) = layout(bytes, Chunk::ALIGN) {
                    // SAFETY: the source supplied the chunk. The chunk is in no list, none of its
                    // blocks is in use, and the iterator has passed it.
                    unsafe { source.give(SourceChunk { data: chunk.0.cast(), layout }) }
                }
            } else {
                let chunk = chunk.0.as_ptr();
                // SAFETY: the pointers point to chunks of the list that the iterator has passed.
                unsafe {
                    (*chunk).link.next = null_mut();
                    match last.is_null() {
                        true => self.first.set(chunk),
                        false => (*last).link.next = chunk.cast(),
                    }
                }
                last = chunk;
                if is_cut {
                    last_cut = chunk;
                }
            }
            is_cut &= !was_current;
        }
        self.current.set(last_cut);
    }
}
