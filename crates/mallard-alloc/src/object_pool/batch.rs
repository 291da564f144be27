//! Batch functions, which make or drop several objects in one call.

use super::ObjectPool;
use crate::base::bits::out_of_memory;
use crate::base::source::Source;
use crate::handles::Box;
use crate::hooks::Hooks;
use crate::pool::core_trait::Core;
use crate::pool::slots::{CoreOf, Slots};
use crate::sync::Mode;
use crate::Full;
use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

type Block = NonNull<u8>;

/// A guard for the slots of a batch that have no object yet. Dropping the guard frees these slots.
struct Unfilled<'p, M: Mode, S: Source, H> {
    slots: &'p Slots<M, S, H>,
    blocks: &'p [MaybeUninit<Block>],
}

impl<M: Mode, S: Source, H> Unfilled<'_, M, S, H> {
    fn next(&mut self) -> Block {
        let [first, rest @ ..] = self.blocks else { unreachable!("a block for each value") };
        self.blocks = rest;
        // SAFETY: `try_allocate_batch` wrote all blocks.
        unsafe { first.assume_init() }
    }
}

impl<M: Mode, S: Source, H> Drop for Unfilled<'_, M, S, H> {
    fn drop(&mut self) {
        while let (Some(core), false) = (self.slots.core(), self.blocks.is_empty()) {
            let block = self.next();
            // SAFETY: the block is from this core, and nobody uses the block.
            unsafe { core.deallocate(block) }
        }
    }
}

/// A guard for the slots of a batch whose objects are dropped already. Dropping the guard frees
/// these slots.
struct Emptied<'p, M: Mode, S: Source, H> {
    core: &'p CoreOf<M, S, H>,
    blocks: [MaybeUninit<Block>; 32],
    count: usize,
}

impl<M: Mode, S: Source, H> Emptied<'_, M, S, H> {
    fn flush(&mut self) {
        let count = core::mem::take(&mut self.count);
        let blocks: *const Block = self.blocks.as_ptr().cast();
        // SAFETY: the first `count` entries are written. They are blocks from this core that nobody
        // uses.
        unsafe { self.core.deallocate_batch(core::slice::from_raw_parts(blocks, count)) }
    }
}

impl<M: Mode, S: Source, H> Drop for Emptied<'_, M, S, H> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl<T, M: Mode, S: Source, H: Hooks<T>> ObjectPool<T, M, S, H> {
    /// Makes an object of each value, as `try_make_batch` does. If there is no memory, calls
    /// `alloc::alloc::handle_alloc_error`, which aborts.
    pub fn make_batch<const N: usize>(&self, values: [T; N]) -> [Box<'_, T, M, S, H>; N] {
        match self.try_make_batch(values) {
            Ok(boxes) => boxes,
            Err(_) => out_of_memory(Layout::new::<[T; N]>()),
        }
    }

    /// Makes an object of each value, or makes no object and returns all values in the error. A
    /// mode with a lock locks only once for all objects.
    ///
    /// ```
    /// let pool: mallard::ObjectPool<u32> = mallard::ObjectPool::fixed(3);
    /// let [a, b] = pool.make_batch([1, 2]);
    /// assert_eq!(pool.try_make_batch([3, 4]).unwrap_err().into_inner(), [3, 4]);
    /// pool.destroy_batch([a, b]);
    /// assert!(pool.try_make_batch([3, 4, 5]).is_ok());
    /// ```
    #[allow(clippy::type_complexity)] // an alias would hide the error
    pub fn try_make_batch<const N: usize>(
        &self,
        values: [T; N],
    ) -> Result<[Box<'_, T, M, S, H>; N], Full<[T; N]>> {
        let mut blocks = [const { MaybeUninit::uninit() }; N];
        if !self.slots.try_allocate_batch(&mut blocks) {
            return Err(self.slots.full(values));
        }
        let mut unfilled = Unfilled { slots: &self.slots, blocks: &blocks };
        Ok(values.map(|value| self.fill(unfilled.next(), || value)))
    }

    /// Drops all boxes. A mode with a lock locks only once for each 32 boxes. If a box is from
    /// another pool, its slot is freed in that pool.
    ///
    /// ```
    /// let pool = mallard::ObjectPool::new();
    /// pool.destroy_batch((0..100).map(|i| pool.make(i)).collect::<Vec<_>>());
    /// assert!(pool.is_empty());
    /// ```
    pub fn destroy_batch<'p>(&'p self, boxes: impl IntoIterator<Item = Box<'p, T, M, S, H>>)
    where
        T: 'p,
    {
        let Some(core) = self.slots.core() else { return boxes.into_iter().for_each(drop) };
        let blocks = [const { MaybeUninit::uninit() }; 32];
        let mut emptied = Emptied::<M, S, H> { core, blocks, count: 0 };
        for object in boxes {
            // SAFETY: the object has not been dropped, and its pool is borrowed.
            let its =
                unsafe { Slots::<M, S, H>::core_of(Box::as_ptr(&object).cast(), &Self::SHAPE) };
            if !core::ptr::eq(its, core) {
                continue;
            }
            if emptied.count == emptied.blocks.len() {
                emptied.flush();
            }
            let object = Box::into_raw(object);
            emptied.blocks[emptied.count].write(object.cast());
            emptied.count += 1; // counted before the drop, which may panic
            let _alive = crate::handles::DropsObject(object);
            // SAFETY: the object has not been dropped, and its box was taken apart above.
            Slots::<M, S, H>::hooks_of(core).released(unsafe { &mut *object.as_ptr() });
        }
    }
}
