//! Tests of memory from the operating system: pages and shared memory.
#![cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]

use mallard::{
    BlockAllocator, Huge, Measured, Multipool, Owns, Pages, PagesOptions, SharedMemory, Source,
};
use std::alloc::Layout;
use std::fs;
use std::path::PathBuf;

fn layout(bytes: usize, align: usize) -> Layout {
    Layout::from_size_align(bytes, align).unwrap()
}

// ---- pages ----

fn use_and_give(pages: &Pages, bytes: usize, align: usize) {
    let chunk = pages.try_take(layout(bytes, align)).unwrap();
    assert!(chunk.layout.size() >= bytes);
    assert_eq!(chunk.data.addr().get() % align, 0);
    // SAFETY: nothing else uses the chunk.
    unsafe {
        assert_eq!(chunk.data.add(bytes - 1).read(), 0);
        chunk.data.write_bytes(1, chunk.layout.size());
        pages.give(chunk);
    }
}

#[test]
fn chunks_are_whole_pages_zeroed_and_aligned() {
    let huge = PagesOptions { huge: Huge::Advise, ..Default::default() };
    let guarded = PagesOptions { guarded: true, ..Default::default() };
    let populated = PagesOptions { populated: true, ..Default::default() };
    for options in [
        Default::default(),
        guarded,
        populated,
        huge,
        PagesOptions { guarded: true, populated: true, ..huge },
    ] {
        let pages = Pages::with(options);
        for (bytes, align) in [(1, 1), (5000, 8), (100, 1 << 16), (1 << 20, 1 << 22)] {
            use_and_give(&pages, bytes, align);
        }
    }
}

#[test]
fn a_request_for_a_chunk_larger_than_memory_is_an_error() {
    let pages = Pages::new();
    assert!(pages.last_error().is_none());
    assert!(pages.try_take(layout(1 << 60, 8)).is_none());
    assert!(pages.last_error().is_some());
    assert!(pages.try_take(layout(isize::MAX as usize - 4095, 1)).is_none());
    assert!(pages.try_take(layout(8, 1 << 61)).is_none());
    let reserved = Pages::with(PagesOptions { huge: Huge::Reserved, ..Default::default() });
    if let Some(chunk) = reserved.try_take(layout(1, 1)) {
        // SAFETY: the chunk was allocated from this source.
        unsafe { reserved.give(chunk) };
    }
}

#[test]
fn a_multipool_can_use_pages_as_its_source() {
    let pool = Multipool::new_in(Pages::new());
    let blocks: Vec<_> = (0..1000).map(|_| pool.allocate(layout(100, 8))).collect();
    for block in blocks {
        // SAFETY: the block is in use.
        unsafe {
            block.write_bytes(1, 100);
            pool.deallocate(block, layout(100, 8));
        }
    }
}

// ---- shared memory ----

fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("mallard-system-{}-{name}", std::process::id()))
}

#[test]
fn two_mappings_of_a_shared_memory_segment_have_the_same_contents() {
    let one = SharedMemory::anonymous(10_000).unwrap();
    assert_eq!(one.bytes(), 12_288);
    let block = one.allocate(layout(8, 8));
    // SAFETY: nothing truncates the segment or writes through the descriptor, and nothing else uses the
    // block.
    let other = unsafe {
        block.cast::<u64>().write(7);
        SharedMemory::attach(one.descriptor()).unwrap()
    };
    let same = other.at(one.offset_of(block));
    assert_ne!(same, block);
    assert!(other.owns(same.as_ptr()) && !other.owns(block.as_ptr()));
    // SAFETY: the test wrote a number to this block.
    assert_eq!(unsafe { same.cast::<u64>().read() }, 7);
    let next = other.allocate(layout(100, 64));
    assert_eq!(one.offset_of(one.at(other.offset_of(next))) % 64, 0);
    assert!(one.allocate(layout(1, 1)).addr() > one.at(other.offset_of(next)).addr());
    // SAFETY: the blocks are the last ones of the segment.
    unsafe { other.deallocate(other.at(other.statistics().bytes_live + 192 - 1), layout(1, 1)) };
    assert_eq!(other.allocate(layout(0, 16)).addr().get(), 16);
    assert_eq!(one.statistics(), other.statistics());
}

#[test]
fn several_threads_can_allocate_from_a_segment_until_it_is_full() {
    let segment = SharedMemory::anonymous(1 << 16).unwrap();
    let count: usize = std::thread::scope(|scope| {
        let take = || std::iter::from_fn(|| segment.try_allocate(layout(64, 64))).count();
        let threads = [scope.spawn(take), scope.spawn(take)];
        threads.map(|thread| thread.join().unwrap()).into_iter().sum()
    });
    assert_eq!(count, (1 << 16) / 64 - 3);
    assert!(segment.try_allocate(layout(1, 1 << 22)).is_none());
}

#[test]
fn attaching_to_a_file_that_is_not_a_segment_fails() {
    use std::os::fd::AsFd;
    let path = temporary("no_segment");
    fs::write(&path, vec![1; 4096]).unwrap();
    let file = fs::File::options().read(true).write(true).open(&path).unwrap();
    // SAFETY: nothing else uses this file.
    let refusal = unsafe { SharedMemory::attach(file.as_fd()) }.unwrap_err();
    assert!(refusal.to_string().contains("pass the descriptor of a segment"), "{refusal}");
    file.set_len(100).unwrap();
    // SAFETY: nothing else uses this file.
    let refusal = unsafe { SharedMemory::attach(file.as_fd()) }.unwrap_err();
    assert!(refusal.to_string().contains("truncated"), "{refusal}");
    assert!(SharedMemory::anonymous(0).is_err());
    assert!(SharedMemory::anonymous(usize::MAX).is_err());
    fs::remove_file(path).unwrap();
}
