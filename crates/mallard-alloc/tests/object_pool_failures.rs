//! Tests object pools whose source fails, or whose constructors, destructors or hooks panic. Also
//! runs random programs of pool calls.

use crate::common::{Flaky, Random};
use mallard::handles::Box;
use mallard::{
    sync, Buffer, Cause, CountedPool, Full, Growth, Hooks, Key, Key32, Key64, ObjectPool,
    SecondaryMap, SlotMap, Source, Validity,
};
use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;

const MANY: usize = if cfg!(miri) { 200 } else { 20_000 };

/// Counts the values that are alive. The destructor panics when the test requests it.
#[derive(Debug)]
struct Counted {
    live: Rc<Cell<isize>>,
    panics: bool,
}

impl Counted {
    fn new(live: &Rc<Cell<isize>>) -> Self {
        live.set(live.get() + 1);
        Self { live: Rc::clone(live), panics: false }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.set(self.live.get() - 1);
        assert!(!self.panics, "a destructor panics");
    }
}

#[repr(align(128))]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Line([u8; 3]);

/// Calls `fill` with buffers of `bytes` bytes, at addresses that differ modulo 64 and modulo 64 KiB.
/// All results must be equal. If `fill` returns an error, the error must contain how many bytes are
/// missing. That many more bytes must be enough at every address, and one byte less at none.
/// Returns the number of bytes that are enough.
fn fill_buffers(bytes: usize, fill: impl Fn(Buffer) -> Result<(), Cause>) -> usize {
    let mut memory = vec![MaybeUninit::uninit(); bytes + (4 << 16)];
    let mut fill_all = |bytes: usize| {
        let few = (0..1 << 16).step_by(if cfg!(miri) { 8200 } else { 4099 });
        let mut results = few.chain(0..if cfg!(miri) { 3 } else { 64 }).map(|begin| {
            let result = fill(Buffer::new(&mut memory[begin..begin + bytes]));
            (begin, result)
        });
        let (_, first) = results.next().unwrap();
        for (begin, result) in results {
            assert_eq!(result, first, "{bytes} bytes at {begin}");
        }
        first
    };
    match fill_all(bytes) {
        Ok(()) => bytes,
        Err(Cause::BufferTooSmall { missing }) => {
            let enough = bytes + missing as usize;
            assert_eq!(fill_all(enough), Ok(()));
            assert_eq!(fill_all(enough - 1), Err(Cause::BufferTooSmall { missing: 1 }));
            enough
        }
        Err(cause) => panic!("{cause}"),
    }
}

#[test]
fn the_error_of_a_pool_in_a_buffer_that_is_too_small_contains_the_missing_bytes() {
    fn make<M: sync::Mode>(buffer: Buffer) -> Result<(), Cause> {
        let pool: ObjectPool<u64, M, _> = ObjectPool::fixed_in(10, buffer);
        let all: Result<Vec<_>, Full<u64>> = (0..10).map(|n| pool.try_make(n)).collect();
        all.map(drop).map_err(|full| full.cause())
    }
    fn count(buffer: Buffer) -> Result<(), Cause> {
        let pool: CountedPool<u64, mallard::handles::Local, sync::Unshared, _> =
            CountedPool::fixed_in(3, buffer);
        let error = pool.try_make(7).err();
        error.map_or(Ok(()), |full| Err(full.cause()))
    }
    for bytes in [10, 1000, 16384] {
        // The buffer needs padding, a chunk of 10 slots, and less than 20 KiB for the pool and the
        // thread caches.
        let enough = 65_536..85_000;
        assert!(enough.contains(&fill_buffers(bytes, make::<sync::Unshared>)));
        assert!(enough.contains(&fill_buffers(bytes, make::<sync::Mutex>)));
        assert!(enough.contains(&fill_buffers(bytes, make::<sync::LockFree>)));
        assert!(enough.contains(&fill_buffers(bytes, make::<sync::ThreadCached>)));
        assert!(enough.contains(&fill_buffers(bytes, count)));
        assert!(fill_buffers(bytes, make::<sync::Unshared<512>>) <= bytes.max(2048));
        assert!(fill_buffers(bytes, make::<sync::ThreadCached<512>>) <= bytes.max(4096));
    }
}

#[test]
fn whether_a_small_buffer_has_room_for_a_first_object_does_not_depend_on_its_address() {
    fn make<M: sync::Growing, T: Default>(buffer: Buffer) -> Result<(), Cause> {
        let pool: ObjectPool<T, M, _> = ObjectPool::new_in(buffer);
        let made = pool.try_make(T::default()).map(drop);
        made.map_err(|full| full.cause())
    }
    for bytes in [10, 1000, 16384] {
        fill_buffers(bytes, make::<sync::Unshared, u64>);
        fill_buffers(bytes, make::<sync::Mutex, Line>);
        fill_buffers(bytes, make::<sync::ThreadCached, Line>);
        fill_buffers(bytes, make::<sync::Unshared<256>, u8>);
        fill_buffers(bytes, make::<sync::ThreadCached<512>, u8>);
    }
}

#[test]
fn a_fixed_pool_of_small_chunks_in_a_buffer_works_at_every_address() {
    let make = |buffer: Buffer| {
        let pool: ObjectPool<u64, sync::Unshared<512>, _> = ObjectPool::fixed_in(10, buffer);
        let all: Result<Vec<_>, Full<u64>> = (0..10).map(|n| pool.try_make(n)).collect();
        all.map(drop).map_err(|full| full.cause())
    };
    let mut memory = vec![MaybeUninit::uninit(); 4096];
    for begin in 0..1024 {
        assert!(make(Buffer::new(&mut memory[begin..begin + 2048])).is_ok());
    }
}

#[test]
fn the_error_of_a_map_in_a_buffer_that_is_too_small_contains_the_missing_bytes() {
    fill_buffers(4096, |buffer| {
        let mut map: SlotMap<Key32, u64, _> = SlotMap::new_in(buffer);
        map.try_insert(7).map(drop).map_err(|full| full.cause())
    });
    fill_buffers(4096, |buffer| {
        let mut map: SlotMap<Key32, Line, _> = SlotMap::new_in(buffer);
        map.try_insert(Line([7; 3])).map(drop).map_err(|full| full.cause())
    });
    for index in [1, 100_000, u64::MAX >> 32] {
        fill_buffers(4096, |buffer| {
            let mut map: SecondaryMap<Key64, u64, _> = SecondaryMap::new_in(buffer);
            let key = Key64::from_bits(1 << 32 | index).unwrap();
            map.try_insert(key, 7).map(drop).map_err(|full| full.cause())
        });
    }
}

#[test]
fn a_full_buffer_is_not_reported_as_a_buffer_that_is_too_small() {
    let mut bytes = vec![MaybeUninit::uninit(); 2048];
    let pool: ObjectPool<u64, sync::Unshared<512>, _> =
        ObjectPool::fixed_in(10, Buffer::new(&mut bytes));
    let _all: Vec<_> = (0..10).map(|n| pool.make(n)).collect();
    assert_eq!(pool.try_make(10).unwrap_err().cause(), Cause::NoMemory);
    let text = Cause::BufferTooSmall { missing: 49_359 }.to_string();
    assert!(text.contains("49359 more bytes are enough"), "{text}");
}

#[test]
fn a_constructor_that_panics_leaks_no_slot() {
    let pool: ObjectPool<u64> = ObjectPool::fixed(1);
    for _ in 0..3 {
        let made = catch_unwind(AssertUnwindSafe(|| drop(pool.make_with(|| panic!("no")))));
        assert!(made.is_err());
    }
    assert_eq!(pool.len(), 0);
    assert!(pool.try_make(1).is_ok());
}

#[test]
fn a_destructor_that_panics_leaks_no_slot() {
    let live = Rc::default();
    let pool: ObjectPool<Counted> = ObjectPool::fixed(1);
    let mut object = pool.make(Counted::new(&live));
    object.panics = true;
    assert!(catch_unwind(AssertUnwindSafe(|| drop(object))).is_err());
    assert_eq!((pool.len(), live.get()), (0, 0));
}

#[test]
fn clear_drops_all_objects_even_if_a_destructor_panics() {
    let live = Rc::default();
    let mut pool: ObjectPool<Counted> = ObjectPool::new();
    for i in 0..10 {
        Box::leak(pool.make(Counted::new(&live))).panics = i == 4;
    }
    assert!(catch_unwind(AssertUnwindSafe(|| pool.clear())).is_err());
    assert_eq!((pool.len(), live.get()), (0, 0));
    let objects = [0; 5].map(|_| pool.make(Counted::new(&live)));
    let batch = objects.map(|mut object| {
        object.panics = live.get() == 5 && !std::mem::replace(&mut object.panics, false);
        object
    });
    let dropped = catch_unwind(AssertUnwindSafe(|| {
        let mut batch = batch;
        for object in &mut batch[1..] {
            object.panics = false;
        }
        pool.destroy_batch(batch);
    }));
    assert!(dropped.is_err());
    assert_eq!((pool.len(), live.get()), (0, 0));
}

#[test]
fn release_returns_all_memory_and_the_pool_can_be_used_again() {
    let source = Flaky::new();
    let mut pool: ObjectPool<u64, sync::Unshared, _> = ObjectPool::new_in(source.clone());
    for round in 0..3 {
        std::mem::forget(pool.make(1));
        (0..MANY).map(|_| pool.make(1)).for_each(drop);
        assert!(source.chunks() >= 3);
        pool.release();
        assert_eq!((source.taken(), source.chunks(), pool.len()), (0, 0, 0));
        assert_eq!(pool.statistics().growths, round + 1);
    }
    assert_eq!(pool.source().taken(), 0);
}

#[test]
fn trim_returns_idle_memory_and_keeps_memory_in_use() {
    let source = Flaky::new();
    let mut pool: ObjectPool<[u64; 8], sync::Unshared<1024>, _> =
        ObjectPool::with_growth_in(Growth::fixed(4096), source.clone());
    let mut boxes: Vec<_> = (0..1000).map(|_| pool.make([1; 8])).collect();
    let full = source.taken();
    let kept: Vec<_> = boxes.drain(..10).map(Box::into_raw).collect();
    drop(boxes);
    pool.trim(0);
    assert!(source.taken() < full / 8, "{} of {full}", source.taken());
    assert_eq!(pool.len(), 10);
    let more: Vec<_> = (0..1000).map(|_| pool.make([2; 8])).collect();
    assert_eq!(pool.len(), 1010);
    drop(more);
    pool.trim(20_000);
    assert!((20_000 - 4096..30_000).contains(&source.taken()), "{}", source.taken());
    for object in kept {
        // SAFETY: `into_raw` made the pointer.
        let object: Box<'_, _, sync::Unshared<1024>, Flaky> = unsafe { Box::from_raw(object) };
        assert_eq!(*object, [1; 8]);
    }
    pool.trim(0);
    assert!(source.chunks() <= 1, "only the core is left");
}

#[test]
fn no_object_is_lost_when_the_source_fails() {
    for successes in 0..12 {
        let source = Flaky::new();
        let mut pool: ObjectPool<[u64; 4], sync::Unshared<1024>, _> =
            ObjectPool::with_growth_in(Growth::fixed(1024), source.clone());
        source.fail_after(successes);
        let mut all = Vec::new();
        while let Ok(object) = pool.try_make([all.len() as u64; 4]) {
            all.push(object);
        }
        assert_eq!(pool.len(), all.len());
        let before = source.taken();
        assert!(pool.try_make([0; 4]).is_err());
        assert_eq!(source.taken(), before, "a failed call changes nothing");
        assert!(all.iter().enumerate().all(|(i, object)| **object == [i as u64; 4]));
        source.recover();
        all.extend((0..200).map(|_| pool.make([7; 4])));
        drop(all);
        assert_eq!(pool.len(), 0);
        pool.trim(0);
    }
}

#[derive(Default)]
struct Log {
    acquired: Cell<usize>,
    released: RefCell<Vec<u32>>,
    panics: Cell<bool>,
}

impl Hooks<u32> for &Log {
    fn acquired(&self, object: &mut u32) {
        self.acquired.set(self.acquired.get() + 1);
        *object += 100;
        assert!(!self.panics.get(), "a hook panics");
    }
    fn released(&self, object: &mut u32) {
        self.released.borrow_mut().push(*object);
        assert!(!self.panics.get(), "a hook panics");
    }
}

#[test]
fn constructor_and_destructor_hooks_are_called_once_for_each_object() {
    let log = Log::default();
    let mut pool = ObjectPool::<u32>::fixed(3).hooked(&log);
    let object = pool.make(1);
    assert_eq!(*object, 101);
    assert_eq!(Box::into_inner(object), 101);
    Box::leak(pool.make(2));
    pool.destroy_batch(pool.make_batch([3, 4]));
    log.panics.set(true);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(pool.make(5)))).is_err());
    assert_eq!(pool.len(), 1);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(pool.make_batch([6, 7])))).is_err());
    assert_eq!(pool.len(), 1);
    log.panics.set(false);
    let object = pool.make(8);
    log.panics.set(true);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(object))).is_err());
    log.panics.set(false);
    assert_eq!(pool.len(), 1);
    assert_eq!(pool.hooks().acquired.get(), 7);
    drop(pool);
    assert_eq!(*log.released.borrow(), [101, 103, 104, 108, 102]);
}

/// A hook that calls the pool to which it belongs.
struct Echo;
static ECHOES: ObjectPool<u8, sync::Mutex, mallard::DefaultHeap, Echo> =
    ObjectPool::<u8, sync::Mutex>::with_hooks(Echo);

impl Hooks<u8> for Echo {
    fn released(&self, object: &mut u8) {
        if *object > 0 {
            drop(ECHOES.make(*object - 1));
        }
    }
}

#[test]
fn a_hook_may_use_the_same_pool() {
    drop(ECHOES.make(20));
    assert_eq!(ECHOES.len(), 0);
}

/// A source that frees and makes objects in the pool that it serves.
struct Meddler(Cell<Option<&'static ObjectPool<u64, sync::Unshared, &'static Meddler>>>);

// SAFETY: every call is passed to the heap, which fulfils the contract of `BlockAllocator`.
unsafe impl mallard::BlockAllocator for Meddler {
    fn try_allocate(&self, layout: std::alloc::Layout) -> Option<std::ptr::NonNull<u8>> {
        if let Some(pool) = self.0.get() {
            let made = pool.try_make(1);
            let more = pool.try_make(2);
            drop((made, more));
        }
        mallard::DefaultHeap.try_take(layout).map(|chunk| chunk.data)
    }
    unsafe fn deallocate(&self, data: std::ptr::NonNull<u8>, layout: std::alloc::Layout) {
        // SAFETY: the chunk is from the heap.
        unsafe { mallard::DefaultHeap.give(mallard::Chunk { data, layout }) }
    }
}

#[test]
fn a_source_may_create_and_free_objects_in_the_pool_that_calls_it() {
    let source: &'static Meddler =
        std::boxed::Box::leak(std::boxed::Box::new(Meddler(Cell::new(None))));
    let pool: *mut ObjectPool<u64, sync::Unshared, &'static Meddler> =
        std::boxed::Box::into_raw(std::boxed::Box::new(ObjectPool::new_in(source)));
    // SAFETY: the pool does not move, and is freed below.
    source.0.set(Some(unsafe { &*pool }));
    let all: Vec<_> = {
        // SAFETY: the pool does not move, and is freed below.
        let pool = unsafe { &*pool };
        (0..MANY as u64).map(|i| pool.make(i)).collect()
    };
    assert!(all.iter().enumerate().all(|(i, object)| **object == i as u64));
    drop(all);
    source.0.set(None);
    // SAFETY: nothing uses the pool any more. The source of the pool stays alive.
    drop(unsafe { std::boxed::Box::from_raw(pool) });
    // SAFETY: the source was leaked above, and its pool has been dropped.
    drop(unsafe { std::boxed::Box::from_raw((source as *const Meddler).cast_mut()) });
}

/// A source that panics once.
struct Panicky(Cell<usize>);

// SAFETY: every call is passed to the heap, which fulfils the contract of `Source`.
unsafe impl Source for Panicky {
    fn try_take(&self, layout: std::alloc::Layout) -> Option<mallard::Chunk> {
        self.0.set(self.0.get().wrapping_sub(1));
        assert_ne!(self.0.get(), 0, "the source panics");
        mallard::DefaultHeap.try_take(layout)
    }
    unsafe fn give(&self, chunk: mallard::Chunk) {
        // SAFETY: the chunk is from the heap.
        unsafe { mallard::DefaultHeap.give(chunk) }
    }
}

fn after_a_panic_of_the_source<M: sync::Growing>() {
    for call in 1..6 {
        let pool = ObjectPool::<u64, M>::new_in(Panicky(Cell::new(call)));
        let mut all = Vec::new();
        for i in 0..MANY as u64 {
            let made = catch_unwind(AssertUnwindSafe(|| pool.make(i)));
            all.extend(made);
        }
        assert!(all.len() >= MANY - 1);
        assert_eq!(pool.len(), all.len());
    }
}

#[test]
fn a_panic_of_the_source_changes_nothing_in_the_pool() {
    after_a_panic_of_the_source::<sync::Unshared>();
    after_a_panic_of_the_source::<sync::Mutex>();
}

/// Runs a random program, and compares the pool with a model after each call.
fn random_program<T: Copy + PartialEq + std::fmt::Debug, const CHUNK: usize>(
    seed: u64,
    of: fn(u64) -> T,
) {
    let mut random = Random::new(seed);
    let source = Flaky::new();
    let growth = [Growth::new(), Growth::fixed(2000), Growth::linear(100, 700).limit(60_000)];
    let mut pool: ObjectPool<T, sync::Unshared<CHUNK>, _> =
        ObjectPool::with_growth_in(growth[random.below(3)], source.clone());
    let mut model: Vec<(std::ptr::NonNull<T>, u64)> = Vec::new();
    type Of<'p, T, const CHUNK: usize> = Box<'p, T, sync::Unshared<CHUNK>, Flaky>;
    let (steps, at_once) = if cfg!(miri) { (40, 40) } else { (600, 200) };
    let mut next = 0;
    for _ in 0..steps {
        match random.below(10) {
            0..4 => {
                for _ in 0..random.below(at_once) {
                    next += 1;
                    match pool.try_make(of(next)) {
                        Ok(object) => model.push((Box::into_raw(object), next)),
                        Err(full) => assert_eq!(full.into_inner(), of(next)),
                    }
                }
            }
            4..8 => {
                for _ in 0..random.below(at_once).min(model.len()) {
                    let (object, n) = model.swap_remove(random.below(model.len()));
                    assert_eq!(pool.classify(object.as_ptr()), Validity::Valid);
                    // SAFETY: `into_raw` made the pointer, which is used once.
                    let object: Of<'_, T, CHUNK> = unsafe { Box::from_raw(object) };
                    assert_eq!(*object, of(n));
                }
            }
            8 => match random.below(6) {
                0 => {
                    pool.clear();
                    model.clear();
                }
                1 => {
                    pool.release();
                    model.clear();
                    assert_eq!(source.taken(), 0);
                }
                _ => pool.trim(random.below(9000)),
            },
            _ => match random.below(2) {
                0 => source.fail_after(random.below(4)),
                _ => source.recover(),
            },
        }
        assert_eq!(pool.len(), model.len());
        let statistics = pool.statistics();
        assert_eq!(statistics.bytes_taken, source.taken());
        assert!(statistics.bytes_live + statistics.bytes_idle <= source.taken());
    }
    let mut seen: Vec<_> = pool.iter().map(std::ptr::NonNull::from).collect();
    let mut expected: Vec<_> = model.iter().map(|(object, _)| *object).collect();
    seen.sort_unstable();
    expected.sort_unstable();
    assert_eq!(seen, expected);
}

#[test]
fn random_operations_have_the_same_results_as_a_model() {
    for seed in 0..if cfg!(miri) { 1 } else { 8 } {
        random_program::<u64, 65536>(seed, |n| n);
        random_program::<u64, 256>(seed, |n| n);
        random_program::<u8, 1024>(seed, |n| n as u8);
        random_program::<Line, 2048>(seed, |n| Line([n as u8; 3]));
        random_program::<[u32; 130], 65536>(seed, |n| [n as u32; 130]);
        if cfg!(miri) {
            continue;
        }
        random_program::<[u64; 5], 65536>(seed, |n| [n; 5]);
        random_program::<[u64; 5], 4096>(seed, |n| [n; 5]);
    }
}
