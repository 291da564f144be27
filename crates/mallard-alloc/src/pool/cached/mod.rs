//! The core of `sync::ThreadCached`, with chunks that all threads share and a cache for each
//! thread.

pub(crate) mod chunk;
pub(crate) mod inbox;
pub(crate) mod thread_cache;

use super::chunk_list::{core_of, ChunkList};
use super::core_trait::{Core, LiveCursor};
use super::free_bitmap::BitChunk;
use super::layout::{header_of, ChunkLayout, SlotShape};
use crate::base::growth::Growth;
use crate::base::source::Source;
use crate::base::statistics::{Statistics, Validity};
use crate::threads::lock::{Held, Locked};
use crate::threads::registry::ThreadKey;
use chunk::{header_bytes, CachedChunk};
use core::ptr::NonNull;
use thread_cache::{bit_of, ThreadCache, NO_CACHE};

type Block = NonNull<u8>;

/// The core of `sync::ThreadCached`.
///
/// A thread allocates from its own cache and frees to that cache, without a lock and without an
/// atomic read-modify-write. If the cache is empty, the thread looks for free blocks in five
/// places, in this order: the chunks of its cache, the blocks of those chunks that other threads
/// freed, abandoned caches, memory from the source, and the chunks of other caches.
///
/// A cache owns its chunks for good, and continues to exist after its thread has exited. A new
/// thread reclaims the whole cache
/// (docs/decisions/0013-a-thread-cache-owns-its-chunks-for-good.md).
///
/// Each cache has a magazine, which is a stack of free blocks. When the limit is reached or the
/// source is exhausted, blocks may still be free in the magazines of other threads. Each magazine
/// holds at most 1,024 blocks, at most 256 KiB, and at most a 16th of the blocks that the pool may
/// have. A thread that finds no memory asks the other threads for these blocks, and each of them
/// returns its blocks to their chunks at its next free.
///
/// A thread has no cache if there was no memory for a cache, or if the thread is exiting. Such a
/// thread works under the lock. A free never waits for a thread that calls the source.
#[doc(hidden)]
#[allow(missing_debug_implementations)] // not a public name
#[repr(C)]
pub struct CachedCore<S: Source> {
    key: ThreadKey,
    layout: ChunkLayout,
    /// The data under the pool's lock. A thread holds this lock while it calls the source.
    shared: Locked<Shared>,
    source: S,
}

// This equation holds between any two calls, where |x| is the number of blocks in x:
//
//   live + |magazines| + |free bits| + |remote bits| + |never used|  ==  capacity of all chunks
struct Shared {
    chunks: ChunkList,
    /// The first cache in the list of all caches.
    caches: *const ThreadCache,
    cache_bytes: usize,
    // Counters of caches that no longer exist:
    refills: usize,
    flushes: usize,
}

// SAFETY: `caches` points to caches that belong to this core.
unsafe impl Send for Shared {}
// SAFETY: a cache is used by its thread, or under the lock. Everything in `Shared`, and the source,
// are used under the lock, so one thread at a time calls the source.
unsafe impl<S: Source + Send> Sync for CachedCore<S> {}
// SAFETY: nothing in the core depends on the thread that made the core.
unsafe impl<S: Source + Send> Send for CachedCore<S> {}

/// Returns the largest number of blocks in the magazine of a thread, in a pool with this limit.
fn cache_entries(shape: &SlotShape, limit: usize) -> usize {
    ThreadCache::entries_max(shape.stride, shape.most.min(limit / shape.stride))
}

impl<S: Source> CachedCore<S> {
    /// Returns the cache of the current thread, if it has one.
    #[inline(always)]
    fn cache(&self) -> Option<&ThreadCache> {
        // SAFETY: a cache begins with its `ThreadPart`. The key finds only caches that exist,
        // because the key is deleted (`key.end`) before the caches are returned to the source.
        self.key.find().map(|part| unsafe { part.cast::<ThreadCache>().as_ref() })
    }

    /// Allocates a block when the cache has none, or when the thread has no cache.
    #[cold]
    #[inline(never)]
    fn refill(&self) -> Option<Block> {
        if let Some(block) = self.cache().and_then(|cache| cache.take(&self.layout)) {
            return Some(block);
        }
        let mut shared = self.shared.lock();
        match self.cache().or_else(|| self.get_cache(&mut shared)) {
            Some(cache) => self.grow(&mut shared, cache),
            None => self.grow_without_cache(&mut shared),
        }
    }

    fn grow(&self, shared: &mut Shared, cache: &ThreadCache) -> Option<Block> {
        let layout = &self.layout;
        let others = |shared| self.caches(shared).filter(|c| !core::ptr::eq(*c, cache));
        // If the thread has just reclaimed the cache, the cache may have blocks.
        cache
            .take(layout)
            .or_else(|| self.abandoned(shared).find_map(|c| cache.take_from(c, layout)))
            .or_else(|| {
                self.make_chunk(shared, cache)?;
                cache.take(layout)
            })
            .or_else(|| others(shared).find_map(|c| cache.take_from(c, layout)))
            .or_else(|| {
                others(shared).for_each(ThreadCache::close);
                cache.take(layout) // a block may have been freed while the source worked
            })
    }

    /// Allocates a block for a thread without a cache. If a new chunk is needed, it is added to a
    /// cache that no thread owns.
    fn grow_without_cache(&self, shared: &mut Shared) -> Option<Block> {
        let layout = &self.layout;
        let lent = self.abandoned(shared).find_map(|c| c.take_one(layout));
        lent.or_else(|| {
            let abandoned = self.abandoned(shared).next();
            let owner = abandoned.or_else(|| self.make_cache(shared))?;
            self.make_chunk(shared, owner)?;
            owner.take_one(layout)
        })
        .or_else(|| self.caches(shared).find_map(|c| c.take_one(layout)))
        .or_else(|| {
            self.caches(shared).for_each(ThreadCache::close);
            None
        })
    }

    /// Adds a chunk to the cache `owner`.
    fn make_chunk(&self, shared: &mut Shared, owner: &ThreadCache) -> Option<()> {
        let core = (&raw const *self).cast();
        let chunks = &shared.chunks;
        let header = chunks
            .next_chunk(core)
            .or_else(|| chunks.grow(&self.source, self.layout.shape.bytes, core))?;
        // SAFETY: the list wrote the `ChunkHead`. The owner exists for as long as the chunk.
        owner.owner().add(unsafe { CachedChunk::begin(header, owner.owner()) });
        Some(())
    }

    /// Frees a block when the cache is full, or when the thread has no cache.
    #[cold]
    #[inline(never)]
    fn overflow(&self, block: Block) {
        // A free calls `try_lock`, so that it does not wait for a thread that calls the source.
        let cache = self.cache().or_else(|| self.get_cache(&mut *self.shared.try_lock()?));
        match cache {
            Some(cache) => cache.push(&self.layout, block),
            None => {
                let (chunk, w, bit) = bit_of(&self.layout, block);
                chunk.free_remotely(w, bit);
            }
        }
    }

    /// Makes an abandoned cache or a new cache the cache of this thread. Requires that the thread
    /// has no cache yet.
    fn get_cache(&self, shared: &mut Shared) -> Option<&ThreadCache> {
        if !self.key.prepare() {
            return None;
        }
        let abandoned = self.abandoned(shared).next();
        let cache = abandoned.or_else(|| self.make_cache(shared))?;
        cache.thread().reclaim();
        self.key.set(NonNull::from(cache).cast());
        Some(cache)
    }

    fn make_cache(&self, shared: &mut Shared) -> Option<&ThreadCache> {
        let entries = cache_entries(&self.layout.shape, shared.chunks.growth.growth().limit);
        let taken = self.source.try_take(ThreadCache::layout(entries)?)?;
        // SAFETY: the source has just supplied the memory, with the layout of a cache. The memory
        // is valid until the cache leaves the list.
        let cache = unsafe { ThreadCache::begin(taken, entries, shared.caches).as_ref() };
        shared.caches = cache;
        shared.cache_bytes += taken.layout.size();
        Some(cache)
    }

    fn caches<'a>(&'a self, shared: &Shared) -> impl Iterator<Item = &'a ThreadCache> {
        // SAFETY: the caches in the list exist while the lock is held.
        let first = unsafe { shared.caches.as_ref() };
        // SAFETY: the next cache is in the list as well, so it exists while the lock is held.
        core::iter::successors(first, |c| unsafe { c.next().as_ref() })
    }
    fn abandoned<'a>(&'a self, shared: &Shared) -> impl Iterator<Item = &'a ThreadCache> {
        self.caches(shared).filter(|c| c.is_abandoned())
    }

    // --- Functions that require that no other thread is inside a call. Other threads may exit,
    // though.

    /// Returns all free blocks to their chunks, by setting their free bits.
    fn flush_all(&self) -> Held<'_, Shared> {
        let shared = self.shared.lock();
        self.caches(&shared).for_each(|c| c.flush_all(&self.layout));
        shared
    }

    /// Rebuilds the lists of chunks, after some chunks were returned or emptied.
    fn list_all(&self, shared: &Shared) {
        self.caches(shared).for_each(ThreadCache::clear);
        for_each_chunk(shared, |chunk| chunk.owner().add(chunk));
    }

    /// Returns to the source the caches for which `is_gone` returns `true`.
    fn give_caches(&self, shared: &mut Shared, is_gone: impl Fn(&ThreadCache) -> bool) {
        let mut at = core::mem::replace(&mut shared.caches, NO_CACHE);
        // SAFETY: the cache is in the list, or was in the list until this loop removed it.
        while let Some(cache) = unsafe { at.as_ref() } {
            at = cache.next();
            if !is_gone(cache) {
                cache.set_next(core::mem::replace(&mut shared.caches, cache));
                continue;
            }
            shared.refills += cache.refills();
            shared.flushes += cache.flushes();
            shared.cache_bytes -= cache.memory().layout.size();
            // SAFETY: the source supplied the memory. No thread finds the cache, and the cache owns
            // no chunk.
            unsafe { self.source.give(cache.memory()) }
        }
    }

    fn give_all(&mut self) {
        self.key.end();
        let mut guard = self.shared.lock();
        let shared = &mut *guard;
        self.caches(shared).for_each(ThreadCache::clear);
        shared.chunks.release(&self.source);
        self.give_caches(shared, |_| true);
    }
}

/// Returns the chunk of a header that is in the list.
fn chunk_of(header: NonNull<u8>) -> CachedChunk {
    // SAFETY: `make_chunk` has called `begin` for every chunk of the list.
    unsafe { CachedChunk::new(header) }
}

fn for_each_chunk(shared: &Shared, mut f: impl FnMut(CachedChunk)) {
    shared.chunks.for_each(|header| f(chunk_of(header)));
}

// SAFETY: a block is a carved slot that has no bit and is in no cache, so nobody else uses the
// block until it is freed. All threads may call the `&self` functions.
unsafe impl<S: Source> Core<S> for CachedCore<S> {
    fn new(shape: SlotShape, growth: Growth, source: S) -> Self {
        let layout = ChunkLayout::new(shape, header_bytes);
        let shared = Shared {
            chunks: ChunkList::new(layout, growth),
            caches: NO_CACHE,
            cache_bytes: 0,
            refills: 0,
            flushes: 0,
        };
        Self { key: ThreadKey::new(), layout, shared: Locked::new(shared), source }
    }

    fn bytes_for(shape: SlotShape, count: usize) -> usize {
        ChunkLayout::new(shape, header_bytes).bytes_for(count)
    }
    fn bytes_aside(shape: SlotShape, limit: usize) -> usize {
        let cache = ThreadCache::layout(cache_entries(&shape, limit));
        cache.map_or(0, |cache| cache.size() + cache.align() - 1)
    }

    #[inline]
    fn try_allocate(&self) -> Option<Block> {
        if let Some(cache) = self.cache() {
            if let Some(block) = cache.try_pop() {
                return Some(block);
            }
        }
        self.refill()
    }

    #[inline]
    unsafe fn deallocate(&self, block: Block) {
        if let Some(cache) = self.cache() {
            if cache.try_push(block) {
                return;
            }
        }
        self.overflow(block);
    }

    #[inline(always)]
    unsafe fn of<'a>(block: Block, shape: &SlotShape) -> &'a Self {
        // SAFETY: the header of a block in use points to its core.
        unsafe { &*core_of(header_of(block, shape)).cast() }
    }

    fn next_live(&mut self, cursor: &mut LiveCursor) -> Option<Block> {
        let shared = match cursor.chunk.is_null() {
            true => self.flush_all(),
            false => self.shared.lock(),
        };
        let mut header = NonNull::new(cursor.chunk);
        loop {
            if let Some(header) = header {
                if let Some(slot) = chunk_of(header).next_used(cursor.slot) {
                    cursor.slot = slot + 1;
                    return Some(self.layout.block_at(header, slot));
                }
            }
            header = Some(shared.chunks.next(cursor)?);
        }
    }

    fn reset(&mut self) {
        let shared = self.flush_all();
        for_each_chunk(&shared, |chunk| chunk.reset());
        self.list_all(&shared);
    }

    fn release(&mut self) {
        self.give_all();
    }

    fn trim(&mut self, keep: usize) {
        let mut guard = self.flush_all();
        let shared = &mut *guard;
        shared.chunks.give_idle(&self.source, keep, |header| chunk_of(header).is_idle());
        self.list_all(shared);
        self.give_caches(shared, |c| c.is_abandoned() && c.owner().count() == 0);
    }

    fn statistics(&self) -> Statistics {
        let shared = self.shared.lock();
        let (mut live, mut capacity, mut free, mut chunks) = (0, 0, 0, 0);
        for_each_chunk(&shared, |chunk| {
            live += chunk.carved_blocks();
            capacity += chunk.slots().capacity();
            free += chunk.free_blocks() + chunk.remote_blocks();
            chunks += 1;
        });
        let (mut refills, mut flushes) = (shared.refills, shared.flushes);
        for cache in self.caches(&shared) {
            free += cache.len();
            refills += cache.refills();
            flushes += cache.flushes();
        }
        live = live.saturating_sub(free);
        let (growth, block_bytes) = (&shared.chunks.growth, self.layout.shape.stride);
        Statistics {
            blocks_live: live,
            bytes_live: live * block_bytes,
            bytes_idle: (capacity - live) * block_bytes,
            bytes_taken: growth.taken() + shared.cache_bytes,
            chunks,
            growths: growth.steps(),
            refills,
            flushes,
        }
    }

    fn classify(&self, p: *const u8) -> Validity {
        let shared = self.shared.lock();
        let Some(header) = shared.chunks.find(p) else {
            return Validity::Miss;
        };
        let chunk = chunk_of(header);
        let used = |slot| chunk.is_carved(slot) && !chunk.has_bit(slot);
        let is_out = self.layout.slot_at(header, p).is_some_and(used);
        match is_out && !self.caches(&shared).any(|c| c.contains(p)) {
            true => Validity::Valid,
            false => Validity::Invalid,
        }
    }

    fn source(&self) -> &S {
        &self.source
    }
}

impl<S: Source> Drop for CachedCore<S> {
    fn drop(&mut self) {
        self.give_all();
    }
}
