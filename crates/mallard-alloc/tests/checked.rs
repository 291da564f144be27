//! Tests that the adaptor `Checked` reports the bugs of callers.

use mallard::{
    BlockAllocator, Checked, Counted, DefaultHeap, Fault, FaultKind, Multipool, Resettable,
    Synchronized,
};
use std::alloc::Layout;
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::NonNull;

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 8).unwrap()
}

/// Runs a program, and returns the number of faults of each kind, and the last message.
fn faults_of(
    program: impl FnOnce(&Checked<Counted<Multipool>, &dyn Fn(&Fault<'_>)>),
) -> (Vec<FaultKind>, String) {
    let seen = RefCell::new((Vec::new(), String::new()));
    let handler = |fault: &Fault<'_>| {
        let mut seen = seen.borrow_mut();
        seen.0.push(fault.kind);
        seen.1 = fault.to_string();
    };
    let memory = Checked::with_handler(
        "orders",
        Counted::new(Multipool::new()),
        &handler as &dyn Fn(&Fault<'_>),
    );
    program(&memory);
    drop(memory);
    seen.into_inner()
}

fn free<A: BlockAllocator>(of: &A, block: NonNull<u8>, bytes: usize) {
    // SAFETY: some tests free a block that they must not free, on purpose. `Checked` detects the
    // error.
    unsafe { of.deallocate(block, layout(bytes)) }
}

fn write<A: BlockAllocator>(_: &A, block: NonNull<u8>, offset: isize) {
    // SAFETY: the address is within the memory that `Checked` allocated around the block. The test
    // writes outside the block on purpose.
    unsafe { block.offset(offset).write(1) }
}

#[test]
fn a_correct_program_causes_no_report() {
    let (kinds, _) = faults_of(|memory| {
        for bytes in [0, 1, 7, 8, 100, 2000, if cfg!(miri) { 3000 } else { 70_000 }] {
            let block = memory.allocate(layout(bytes));
            // SAFETY: the block is new.
            unsafe { block.write_bytes(1, bytes) };
            memory.verify();
            free(memory, block, bytes);
        }
        let aligned = Layout::from_size_align(10, 256).unwrap();
        let block = memory.allocate(aligned);
        assert_eq!(block.addr().get() % 256, 0);
        // SAFETY: the memory is from this allocator.
        unsafe { memory.deallocate(block, aligned) };
    });
    assert_eq!(kinds, []);
}

#[test]
fn a_double_free_is_reported_and_changes_nothing() {
    let (kinds, message) = faults_of(|memory| {
        let block = memory.allocate(layout(40));
        free(memory, block, 40);
        free(memory, block, 40);
        assert_ne!(memory.allocate(layout(40)), memory.allocate(layout(40)));
    });
    assert_eq!(kinds, [FaultKind::DoubleFree, FaultKind::Leak]);
    assert!(
        message.starts_with("mallard: leak of 80 bytes in \"orders\"\n  2 blocks"),
        "{message}"
    );
}

#[test]
fn an_error_report_has_three_lines() {
    let (_, message) = faults_of(|memory| {
        let block = memory.allocate(layout(40));
        free(memory, block, 40);
        free(memory, block, 40);
    });
    let lines: Vec<_> = message.lines().collect();
    assert!(lines[0].starts_with("mallard: double free of 0x"), "{message}");
    assert!(lines[0].ends_with(" in \"orders\""), "{message}");
    assert!(lines[1].starts_with("  block 1 (40 bytes at 0x"), "{message}");
    assert!(lines[2].starts_with("  help: "), "{message}");
}

#[test]
fn foreign_and_interior_frees_are_distinguished() {
    let (kinds, _) = faults_of(|memory| {
        let mut mine = 0_u64;
        free(memory, NonNull::from(&mut mine).cast(), 8);
        let block = memory.allocate(layout(40));
        // SAFETY: the address is within the block.
        free(memory, unsafe { block.add(8) }, 8);
        free(memory, block, 40);
    });
    assert_eq!(kinds, [FaultKind::ForeignFree, FaultKind::InteriorFree]);
}

#[test]
fn a_free_with_an_incorrect_size_is_reported_and_frees_the_block() {
    let (kinds, message) = faults_of(|memory| {
        let block = memory.allocate(layout(40));
        free(memory, block, 48);
    });
    assert_eq!(kinds, [FaultKind::WrongLayout]);
    assert!(
        message.contains("the call passed 48 bytes aligned to 8; the block was freed"),
        "{message}"
    );
}

#[test]
fn writes_outside_a_block_are_reported_once_and_repaired() {
    let (kinds, message) = faults_of(|memory| {
        let block = memory.allocate(layout(40));
        write(memory, block, -1);
        memory.verify();
        memory.verify();
        write(memory, block, 41);
        free(memory, block, 40);
    });
    assert_eq!(kinds, [FaultKind::Underrun, FaultKind::Overrun]);
    assert!(message.contains(": byte 41 was changed"), "{message}");
}

#[test]
fn a_write_after_free_is_reported_when_the_block_leaves_quarantine() {
    let (kinds, _) = faults_of(|memory| {
        let block = memory.allocate(layout(40));
        free(memory, block, 40);
        write(memory, block, 3);
        for _ in 0..20 {
            let large = memory.allocate(layout(4096));
            free(memory, large, 4096);
        }
    });
    assert_eq!(kinds, [FaultKind::WriteAfterFree]);
}

#[test]
fn a_checked_allocator_frees_all_blocks_except_leaked_ones_when_dropped() {
    let counted = Counted::new(Multipool::new());
    let ignore = |_: &Fault<'_>| {};
    let memory = Checked::with_handler("some", &counted, ignore).quarantine(0);
    let (a, _) = (memory.allocate(layout(40)), memory.allocate(layout(50)));
    free(&memory, a, 40);
    assert_eq!(counted.counts().blocks_live(), 1);
    drop(memory);
    assert_eq!(counted.counts().blocks_live(), 1);
}

#[test]
fn blocks_freed_by_a_reset_are_not_leaks() {
    let mut memory = Checked::new("scratch", Multipool::new());
    memory.allocate(layout(40));
    memory.reset();
    memory.allocate(layout(40));
    memory.release();
    let quiet = Checked::new("quiet", DefaultHeap).without_leaks();
    let block = quiet.allocate(layout(8));
    drop(quiet);
    // SAFETY: the memory that `Checked` allocated begins 16 bytes before the block.
    unsafe { DefaultHeap.deallocate(block.sub(16), layout(40)) };
}

#[test]
fn the_default_handler_panics_and_the_allocator_stays_usable() {
    let memory = Checked::new("orders", Multipool::new());
    let block = memory.allocate(layout(40));
    free(&memory, block, 40);
    let message = catch_unwind(AssertUnwindSafe(|| free(&memory, block, 40))).unwrap_err();
    assert!(message.downcast::<String>().unwrap().starts_with("mallard: double free"));
    let block = memory.allocate(layout(40));
    free(&memory, block, 40);
    let leaks = AssertUnwindSafe(|| {
        memory.allocate(layout(1));
        drop(memory);
    });
    let message = catch_unwind(leaks).unwrap_err().downcast::<String>().unwrap();
    assert!(message.starts_with("mallard: leak of 1 bytes in \"orders\""), "{message}");
}

#[test]
fn the_quarantine_is_freed_before_an_allocation_fails() {
    use mallard::{Budget, Limited};
    let memory = Checked::new("tight", Limited::new(Budget::bytes(300), Multipool::new()));
    for _ in 0..10 {
        let block = memory.allocate(layout(200));
        free(&memory, block, 200);
    }
    assert!(memory.try_allocate(layout(280)).is_none());
}

#[test]
fn a_checked_allocator_works_inside_a_synchronized_one() {
    let memory = Synchronized::new(Checked::new("shared", Multipool::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| free(&memory, memory.allocate(layout(24)), 24));
        }
    });
}
