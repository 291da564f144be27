//! Tests that blocks can use nine tenths of a limit, at every block size and in every threading
//! mode.

use mallard::{size_class, sync, Arena, BlockAllocator, DefaultHeap, Growth, Multipool};
use mallard::{ObjectPool, Pool, Validity};
use std::alloc::Layout;

fn layout(bytes: usize, align: usize) -> Layout {
    Layout::from_size_align(bytes, align).unwrap()
}

const BLOCKS: [usize; 25] = [
    8, 16, 24, 48, 64, 100, 200, 256, 500, 512, 520, 600, 1000, 2000, 4000, 4096, 5000, 8192,
    10_000, 16_000, 16_384, 20_000, 33_000, 200_000, 1_000_000,
];

/// Returns limits that hold a few blocks, and limits that do not depend on the block size.
fn limits_for(block: usize) -> Vec<usize> {
    let few = [1, 2, 3, 5, 8, 9, 10, 15, 16, 17, 24, 33, 50, 100].map(|n| n * block * 10 / 9 + 1);
    let any = [8192, 10_000, 16_384, 40_000, 65_536, 100_000, 300_000, 1 << 20, 5 << 20];
    let mut limits: Vec<_> = few.into_iter().chain(any).collect();
    limits.retain(|&l| l >= 8192 && l > block && l <= (1 << 20).max(40 * block));
    limits.retain(|&l| l / block <= 20_000);
    limits
}

/// Returns the number of whole blocks that fit in nine tenths of a limit. `beside` is the overhead
/// of each block in eighths of a byte.
fn promised(limit: usize, block: usize, beside: usize) -> usize {
    limit / 10 * 9 * 8 / (block * 8 + beside)
}

/// Fills pools under many limits and checks the number of blocks. The pool's own data (its core)
/// counts toward its limit.
fn sweep<M: sync::Growing>(beside: impl Fn(usize) -> usize, from: usize, fewer: usize) {
    for block in BLOCKS {
        for limit in limits_for(block).into_iter().filter(|&l| l >= from) {
            let growth = Growth { first: 65_536, ..Growth::new() }.limit(limit + 1024);
            let mut pool: Pool<M> = Pool::with_growth(layout(block, 8), growth);
            let wanted = layout(block, 8);
            let fill = |pool: &Pool<M>| -> Vec<_> {
                std::iter::from_fn(|| pool.try_allocate(wanted))
                    .inspect(|b| {
                        // SAFETY: the block is as large as the bytes written, and nothing else uses
                        // the block.
                        unsafe {
                            b.write(1);
                            b.add(block - 1).write(1);
                        }
                    })
                    .collect()
            };
            let blocks = fill(&pool);
            let least = promised(limit, block, beside(block)).saturating_sub(fewer);
            assert!(blocks.len() >= least, "{} of {least}: {block} in {limit}", blocks.len());
            if limit <= 100_000 {
                for b in &blocks {
                    assert_eq!(pool.classify(b.as_ptr()), Validity::Valid);
                    if block > 8 {
                        assert_eq!(pool.classify(b.as_ptr().wrapping_add(8)), Validity::Invalid);
                    }
                }
                // SAFETY: the blocks are from this pool, with this layout, and each block is freed
                // once.
                blocks.into_iter().for_each(|b| unsafe { pool.deallocate(b, wanted) });
                let again = fill(&pool);
                assert!(again.len() >= least, "{} again: {block} in {limit}", again.len());
                // SAFETY: the blocks are from this pool, with this layout, and each is freed once.
                again.into_iter().for_each(|b| unsafe { pool.deallocate(b, wanted) });
                pool.trim(0);
                let again = fill(&pool);
                assert!(again.len() >= least, "{} after trim: {block} in {limit}", again.len());
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn blocks_can_fill_nine_tenths_of_any_limit_in_pools_of_one_thread() {
    sweep::<sync::Unshared>(|_| 1, 8192, 0);
}

#[test]
#[cfg_attr(miri, ignore)]
fn blocks_can_fill_nine_tenths_of_any_limit_in_pools_behind_a_mutex() {
    sweep::<sync::Mutex>(|_| 1, 8192, 0);
}

#[test]
#[cfg_attr(miri, ignore)]
fn blocks_can_fill_nine_tenths_of_any_limit_less_one_block_in_thread_cached_pools() {
    sweep::<sync::ThreadCached>(|_| 2, 16_384, 1);
}

#[test]
#[cfg_attr(miri, ignore)]
fn lock_free_pools_use_little_more_memory_than_their_blocks_and_links() {
    for block in BLOCKS {
        for count in [1, 2, 5, 16, 100, 1000, 20_000].into_iter().filter(|n| n * block <= 5 << 20) {
            let wanted = layout(block, 8);
            let pool: Pool<sync::LockFree> = Pool::fixed(wanted, count);
            let blocks: Vec<_> = std::iter::from_fn(|| pool.try_allocate(wanted)).collect();
            assert_eq!(blocks.len(), count);
            for b in &blocks {
                // SAFETY: the block is as large as the bytes written, and nothing else uses the block.
                unsafe {
                    b.write(1);
                    b.add(block - 1).write(1);
                }
                assert_eq!(pool.classify(b.as_ptr()), Validity::Valid);
            }
            // The overhead is the core, a header for each chunk, and the rest of each chunk that is
            // too small for a block.
            let taken = pool.statistics().bytes_taken;
            let beside = if block <= 8 { 8 } else { 6 };
            let bound = count * (block + beside) * 10 / 9 + 2 * block + 6 * 1024;
            assert!(taken <= bound, "{taken} of {bound} for {count} blocks of {block}");
            // SAFETY: the blocks are from this pool, with this layout, and each block is freed once.
            blocks.into_iter().for_each(|b| unsafe { pool.deallocate(b, wanted) });
            assert_eq!(pool.statistics().blocks_live, 0);
        }
    }
}

#[test]
fn the_first_block_uses_little_more_memory_than_its_size() {
    fn first<M: sync::Growing>() {
        let bytes = if cfg!(miri) { 100_000 } else { 16 << 20 };
        let growth = Growth { first: 65_536, ..Growth::new() };
        let pool: Pool<M> = Pool::with_growth(layout(bytes, 8), growth);
        let a = pool.allocate(layout(bytes, 8));
        let taken = pool.statistics().bytes_taken;
        assert!(taken < bytes + bytes / 8, "{taken}");
        let b = pool.allocate(layout(bytes, 8));
        // SAFETY: each block is as large as the bytes written.
        unsafe {
            a.add(bytes - 1).write(1);
            b.write(2);
            assert_eq!((a.add(bytes - 1).read(), b.read()), (1, 2));
            pool.deallocate(a, layout(bytes, 8));
            pool.deallocate(b, layout(bytes, 8));
        }
        assert_eq!(pool.statistics().blocks_live, 0);
    }
    first::<sync::Unshared>();
    first::<sync::Mutex>();
    first::<sync::ThreadCached>();
}

#[test]
#[cfg_attr(miri, ignore)]
fn a_pool_allocates_a_block_of_a_gibibyte() {
    let pool: Pool = Pool::new(layout(1 << 30, 8));
    assert!(pool.try_allocate(layout(1 << 30, 8)).is_some());
}

#[test]
fn pools_of_every_mode_hold_large_objects() {
    fn live<M: sync::Growing>() {
        let mut pool: ObjectPool<[u64; 4096], M> =
            ObjectPool::with_growth(Growth { first: 65_536, limit: 600_000, ..Growth::new() });
        let mut boxes: Vec<_> = (0..16).map(|i| pool.make([i; 4096])).collect();
        assert!(boxes.iter().zip(0..).all(|(b, i)| b[0] == i && b[4095] == i));
        boxes.retain(|b| b[7] % 3 == 0);
        let freed = 16 - boxes.len() as u64;
        boxes.extend((0..freed).map(|i| pool.make([i; 4096])));
        assert_eq!(boxes.len(), 16);
        boxes.into_iter().take(3).for_each(|b| {
            mallard::handles::Box::leak(b);
        });
        assert_eq!(pool.iter_mut().count(), 3);
        pool.clear();
        pool.trim(0);
        assert_eq!(pool.statistics().blocks_live, 0);
    }
    live::<sync::Unshared>();
    live::<sync::Mutex>();
    live::<sync::ThreadCached>();
}

#[test]
#[cfg_attr(miri, ignore)]
fn blocks_can_fill_nine_tenths_of_any_limit_in_arenas_and_multipools() {
    for block in BLOCKS.into_iter().filter(|&b| b <= 200_000) {
        for limit in limits_for(block) {
            let arena: Arena = Arena::with_growth(Growth::new().limit(limit));
            let fill = std::iter::from_fn(|| arena.try_allocate(layout(block, 8))).count();
            let least = limit / 10 * 9 / block.next_multiple_of(8);
            assert!(fill >= least, "{fill} of {least}: {block} in {limit}");
            let growth = Growth { first: 2048, num: 4, ..Growth::new() }.limit(limit);
            let sizes: Multipool = Multipool::with_growth_in(growth, DefaultHeap);
            let wanted = layout(block.next_multiple_of(8), 8);
            let pooled = block <= 32_768 && limit <= 1 << 20;
            let fill = (0..limit / block + 2).map_while(|_| sizes.try_allocate(wanted));
            if pooled {
                let class = size_class::bytes(size_class::of(wanted.size()));
                let least = limit / 10 * 9 / class;
                let count = fill.count();
                assert!(count >= least, "class: {count} of {least}: {block} in {limit}");
            }
        }
    }
}
