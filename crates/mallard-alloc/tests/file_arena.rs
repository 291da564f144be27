//! Tests of arenas in files.
#![cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]

use crate::common::Random;
use mallard::{layout_hash, BlockAllocator, FileAccess, FileArena, FileOptions, Owns, SystemError};
use std::alloc::Layout;
use std::fs;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("mallard-file_arena-{}-{name}", std::process::id()))
}

/// A file that is deleted at the end of the test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        Self(temporary(name))
    }
    fn open(&self) -> FileArena {
        self.reopen(&small())
    }
    /// Opens a file that this process has closed before. Repeats the attempt while the file is
    /// locked: if another test forked before, its child holds the lock until it executes a program
    /// or exits.
    fn reopen(&self, options: &FileOptions) -> FileArena {
        let begin = Instant::now();
        loop {
            match self.open_with(options) {
                Err(e) if format!("{e:#}").contains("it is already open") => {
                    assert!(begin.elapsed() < Duration::from_secs(60), "{e:#}");
                    std::thread::yield_now();
                }
                opened => return opened.unwrap(),
            }
        }
    }
    fn open_with(&self, options: &FileOptions) -> Result<FileArena, SystemError> {
        open(&self.0, options)
    }
    fn help(&self, options: &FileOptions) -> String {
        format!("{:#}", self.open_with(options).unwrap_err())
    }
    /// Corrupts one byte of the file.
    fn damage(&self, at: usize) {
        let mut bytes = fs::read(&self.0).unwrap();
        bytes[at] ^= 1;
        fs::write(&self.0, bytes).unwrap();
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn open(path: &Path, options: &FileOptions) -> Result<FileArena, SystemError> {
    // SAFETY: nothing else uses the files of these tests while they are open.
    unsafe { FileArena::open(path, options) }
}

fn small() -> FileOptions {
    FileOptions { max_bytes: 1 << 26, sync: false, ..Default::default() }
}
fn read() -> FileOptions {
    FileOptions { access: FileAccess::Read, ..small() }
}

const MARK: u64 = 1;

fn layout(bytes: usize, align: usize) -> Layout {
    Layout::from_size_align(bytes, align).unwrap()
}

fn number(of: &mut FileArena) -> NonNull<u64> {
    of.root_or_allocate(Layout::new::<u64>(), MARK).unwrap().cast()
}

#[test]
fn a_file_contains_exactly_what_was_committed() {
    let path = Temporary::new("committed");
    let mut file = path.open();
    let at = number(&mut file);
    // SAFETY: the root is a number, here and in the following `unsafe` blocks.
    unsafe { at.write(7) };
    file.commit().unwrap();
    // SAFETY: `at` points to the root, which is a number.
    unsafe { at.write(8) };
    drop(file);
    let mut file = path.open();
    assert_eq!(number(&mut file), at, "it is mapped where it was");
    // SAFETY: `at` points to the root, which is a number.
    assert_eq!(unsafe { at.read() }, 7);
    assert_eq!(file.statistics().commits, 1);
    assert_eq!(file.statistics().bytes_committed, 4096);
    file.commit().unwrap();
    assert!(file.statistics().commits <= 2);
    assert!(file.root(2).unwrap_err().to_string().contains("another type"));
    file.reset();
    assert!(file.root(2).unwrap().is_none());
}

#[test]
fn either_several_readers_or_one_writer_can_open_a_file() {
    let path = Temporary::new("readers");
    let mut file = path.open();
    number(&mut file);
    file.commit().unwrap();
    assert!(path.help(&small()).contains("a writer needs it exclusively"));
    assert!(path.help(&read()).contains("already open for writing"));
    drop(file);
    let one = path.reopen(&read());
    let mut two = path.open_with(&FileOptions { relocate: true, ..read() }).unwrap();
    assert!(two.is_relocated() && !one.is_relocated());
    let (a, b) = (one.root(MARK).unwrap().unwrap(), two.root(MARK).unwrap().unwrap());
    assert_eq!(one.offset_of(a), two.offset_of(b));
    assert!(path.help(&read()).contains("set relocate"));
    assert!(two.try_allocate(layout(1, 1)).is_none());
    assert!(two.set_root(b, MARK).is_err());
    assert!(two.commit().unwrap_err().to_string().contains("open for reading"));
}

#[test]
fn opening_a_foreign_or_corrupt_file_fails_and_explains_what_to_do() {
    let path = Temporary::new("refused");
    let existing = FileOptions { access: FileAccess::Existing, ..small() };
    assert!(path.help(&existing).contains("help: check the path"));
    fs::write(&path.0, b"").unwrap();
    assert!(path.help(&existing).contains("it is empty"));
    fs::write(&path.0, vec![b'x'; 20_000]).unwrap();
    assert!(path.help(&small()).contains("not a Mallard arena"));
    fs::remove_file(&path.0).unwrap();
    let mut file = path.open();
    number(&mut file);
    file.allocate(layout(10_000, 8));
    file.commit().unwrap();
    drop(file);
    let whole = fs::read(&path.0).unwrap();
    fs::write(&path.0, &whole[..whole.len() - 1]).unwrap();
    assert!(path.help(&small()).contains("truncated"));
    let damaged_at = |at, help: &str, options: &FileOptions| {
        fs::write(&path.0, &whole).unwrap();
        path.damage(at);
        let told = path.help(options);
        assert!(told.contains(help), "byte {at}: {told}");
    };
    damaged_at(3 * 4096 + 1000, "it is corrupt", &small());
    damaged_at(2 * 4096 + 8, "it is corrupt", &small());
    damaged_at(5 * 4096, "a page of", &FileOptions { verify: true, ..small() });
    // Opening needs only one valid header, and repairs the other one.
    fs::write(&path.0, &whole).unwrap();
    path.damage(30);
    drop(path.open());
    assert_eq!(fs::read(&path.0).unwrap(), whole);
    path.damage(30);
    path.damage(4096 + 30);
    assert!(path.help(&small()).contains("both headers are corrupt"));
    let mut version = whole.clone();
    version[8] = 9;
    version[4096 + 8] = 9;
    fs::write(&path.0, version).unwrap();
    assert!(path.help(&small()).contains("another version"));
    let mut order = whole;
    order[..8].reverse();
    order[4096..4104].reverse();
    fs::write(&path.0, order).unwrap();
    assert!(path.help(&small()).contains("other byte order"));
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Golden {
    number: u64,
    name: [u8; 16],
}
const GOLDEN: Golden =
    Golden { number: 0x0123_4567_89ab_cdef, name: *b"golden\0\0\0\0\0\0\0\0\0\0" };

#[test]
fn the_format_equals_that_of_the_golden_file() {
    let golden = include_bytes!("../spec/file_arena.golden");
    let path = Temporary::new("golden");
    fs::write(&path.0, golden).unwrap();
    let mark = layout_hash("golden_file::root", Layout::new::<Golden>());
    let file = path.open_with(&FileOptions { relocate: true, verify: true, ..read() }).unwrap();
    let root = file.root(mark).unwrap().unwrap().cast::<Golden>();
    // SAFETY: the mark of the file identifies the type of the root.
    assert_eq!(unsafe { root.read() }, GOLDEN);
    assert_eq!(file.statistics().bytes_used, 64 + 24);
    drop(file);
    fs::remove_file(&path.0).unwrap();
    let mut file = path.open();
    let root = file.root_or_allocate(Layout::new::<Golden>(), mark).unwrap().cast::<Golden>();
    // SAFETY: the root is a new block, and large enough.
    unsafe { root.write(GOLDEN) };
    file.commit().unwrap();
    drop(file);
    let made = fs::read(&path.0).unwrap();
    // All bytes are equal except the address (which is random), the limit of this opening, and the
    // checksums that cover the address and the limit.
    let page = 4096;
    assert_eq!(made.len(), golden.len());
    assert_eq!(made[3 * page..3 * page + 8], golden[3 * page..3 * page + 8]);
    assert_eq!(made[3 * page + 16..4 * page], golden[3 * page + 16..4 * page]);
    assert_eq!(made[..16], golden[..16]);
    assert_eq!(made[24..40], golden[24..40]);
    assert_eq!(made[48..64], golden[48..64]);
}

#[test]
fn random_commits_reopens_and_shrinks_keep_all_bytes() {
    for seed in 0..3 {
        let path = Temporary::new(&format!("random-{seed}"));
        let mut random = Random::new(seed);
        let mut file = path.open();
        // The blocks in the file and in memory, each with the byte that fills it.
        let mut committed: Vec<(usize, usize, u8)> = Vec::new();
        let mut now = committed.clone();
        for step in 0..150 {
            match random.below(12) {
                0 => {
                    file.reset();
                    now.clear();
                }
                1..4 => {
                    file.commit().unwrap();
                    committed.clone_from(&now);
                }
                4 => {
                    drop(file);
                    file = path.reopen(&FileOptions { verify: true, ..small() });
                    now.clone_from(&committed);
                }
                5 | 6 if !now.is_empty() => {
                    let at = random.below(now.len());
                    let (offset, bytes, fill) = &mut now[at];
                    *fill = step as u8;
                    fill_bytes(&file, *offset, *bytes, *fill);
                }
                _ => {
                    let most = if random.below(4) == 0 { 3 << 20 } else { 9000 };
                    let bytes = 1 + random.below(most);
                    if let Some(block) = file.try_allocate(layout(bytes, 8)) {
                        let offset = file.offset_of(block);
                        fill_bytes(&file, offset, bytes, step as u8);
                        now.push((offset, bytes, step as u8));
                    }
                }
            }
            for &(offset, bytes, fill) in &now {
                for at in [offset, offset + bytes / 2, offset + bytes - 1] {
                    // SAFETY: the address is within a block of the file.
                    let found = unsafe { base(&file).add(at).read() };
                    assert_eq!(found, fill, "seed {seed}, step {step}, byte {at}");
                }
            }
        }
    }
}

fn base(file: &FileArena) -> NonNull<u8> {
    let last = file.allocate(layout(1, 1));
    // SAFETY: a block in use has this offset, and is not used after the free.
    unsafe {
        let base = last.sub(file.offset_of(last));
        file.deallocate(last, layout(1, 1));
        base
    }
}

fn fill_bytes(file: &FileArena, offset: usize, bytes: usize, fill: u8) {
    // SAFETY: the block is in the file.
    unsafe { base(file).add(offset).write_bytes(fill, bytes) };
}

#[test]
fn an_interrupted_commit_is_complete_or_has_no_effect() {
    let path = Temporary::new("interrupted");
    let mut file = path.open();
    let at = number(&mut file);
    // SAFETY: the root is a number, here and in the following `unsafe` blocks.
    unsafe { at.write(1) };
    file.allocate(layout(5000, 8));
    file.commit().unwrap();
    let before = fs::read(&path.0).unwrap();
    // SAFETY: `at` points to the root, which is a number.
    unsafe { at.write(2) };
    file.commit().unwrap();
    drop(file);
    let after = fs::read(&path.0).unwrap();
    // Rebuilds the journal of the second commit from the specification, because a commit truncates
    // its journal.
    let end = after.len();
    let mut journal = vec![0; 8192];
    journal[8] = 1; // marks page 0 of group 0 as changed
    journal[4096..8192].copy_from_slice(&after[2 * 4096..3 * 4096]);
    journal.extend_from_slice(&after[3 * 4096..4 * 4096]);
    let mut crashed = before.clone();
    crashed.extend_from_slice(&journal);
    let value = |bytes: &[u8]| {
        fs::write(&path.0, bytes).unwrap();
        let mut file = path.reopen(&FileOptions { verify: true, ..small() });
        // SAFETY: `number` returns the address of the root, which is a number.
        let value = unsafe { number(&mut file).read() };
        drop(file);
        assert_eq!(fs::read(&path.0).unwrap().len(), end);
        value
    };
    assert_eq!(value(&crashed), 1, "before the first header");
    crashed[..4096].copy_from_slice(&after[..4096]);
    assert_eq!(value(&crashed), 2, "after the first header");
    let mut torn = crashed.clone();
    torn[3 * 4096..4 * 4096].copy_from_slice(&after[3 * 4096..4 * 4096]);
    assert_eq!(value(&torn), 2, "after the data");
    fs::write(&path.0, &crashed).unwrap();
    assert!(path.help(&read()).contains("open the file once for writing"));
}

#[test]
fn only_the_last_block_can_grow_or_be_freed() {
    let path = Temporary::new("last");
    let file = path.open_with(&FileOptions { max_bytes: 1 << 16, ..small() }).unwrap();
    let (a, b) = (file.allocate(layout(100, 8)), file.allocate(layout(100, 8)));
    // SAFETY: the blocks are in use.
    unsafe {
        assert!(file.try_expand(b, layout(100, 8), layout(4000, 8)));
        assert!(!file.try_expand(a, layout(100, 8), layout(101, 8)));
        assert!(file.try_expand(a, layout(100, 8), layout(50, 8)));
        assert!(!file.try_expand(b, layout(4000, 8), layout(1 << 20, 8)));
        file.deallocate(a, layout(50, 8));
        assert_eq!(file.statistics().bytes_used, 64 + 104 + 4000);
        file.deallocate(b, layout(4000, 8));
    }
    assert_eq!(file.allocate(layout(8, 8)), b);
    assert!(file.try_allocate(layout(1 << 20, 8)).is_none());
    assert!(file.try_allocate(layout(isize::MAX as usize - 7, 8)).is_none());
    assert!(file.owns(a.as_ptr()));
    assert_eq!(file.allocate(layout(64, 4096)).addr().get() % 4096, 0);
}
