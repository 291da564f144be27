//! Tests the ring from the side of the command.

use super::*;
use std::convert::Infallible;

const OPTIONS: Options = Options {
    segments: 4,
    drops: false,
    stacks: 3,
    free_stacks: true,
    follow: 0,
    sample_bytes: 0,
    time_calls: 1,
    clock: 1,
    clock_ticks: 0,
    recording: true,
};

/// Pops the top free segment, as a thread of the program does.
fn take(ring: &Ring, thread: u32, sequence: u32) -> usize {
    let top = &ring.header().free_segments;
    let index = (top.load(Ordering::Acquire) as u32).checked_sub(1).expect("a free segment");
    let segment = ring.segment(index as usize);
    top.store(segment.next.load(Ordering::Relaxed).into(), Ordering::Release);
    segment.thread.store(thread, Ordering::Relaxed);
    segment.sequence.store(sequence, Ordering::Relaxed);
    segment.state.store(IN_USE, Ordering::Release);
    index as usize
}

/// Appends a record that is filled with one byte value.
fn append(ring: &Ring, index: usize, byte: u8) {
    let segment = ring.segment(index);
    let count = segment.count.load(Ordering::Relaxed) as usize;
    let at = ring.data_offset + index * SEGMENT_BYTES + count * RECORD_BYTES;
    // SAFETY: the record is in the mapped ring, and no other code reads it yet.
    unsafe { ring.map.as_mut_ptr().add(at).write_bytes(byte, RECORD_BYTES) };
    segment.count.store(count as u32 + 1, Ordering::Release);
}

fn drained(ring: &mut Ring) -> Vec<(u32, Vec<u8>)> {
    let mut pieces = Vec::new();
    let Ok(()) = ring.drain(|owner, records| -> Result<(), Infallible> {
        pieces.push((owner.thread, records.iter().step_by(RECORD_BYTES).copied().collect()));
        Ok(())
    });
    pieces
}

#[test]
fn each_record_in_the_ring_is_read_once() {
    let mut ring = Ring::create(&OPTIONS).unwrap();
    assert_eq!(drained(&mut ring), []);
    let own = take(&ring, 1, 0);
    append(&ring, own, 1);
    assert_eq!(drained(&mut ring), [(1, vec![1])]);
    append(&ring, own, 2);
    append(&ring, own, 3);
    assert_eq!(drained(&mut ring), [(1, vec![2, 3])]);
    assert_eq!(drained(&mut ring), []);
}

#[test]
fn the_ring_segments_of_a_thread_are_read_in_order() {
    let mut ring = Ring::create(&OPTIONS).unwrap();
    let second = take(&ring, 1, 1);
    append(&ring, second, 2);
    assert_eq!(drained(&mut ring), [], "the first segment is not found yet");
    let first = take(&ring, 1, 0);
    append(&ring, first, 1);
    assert_eq!(drained(&mut ring), [(1, vec![1])], "the first segment is not sealed yet");
    ring.segment(first).state.store(SEALED, Ordering::Release);
    assert_eq!(drained(&mut ring), [(1, vec![2])]);
}

#[test]
fn a_sealed_ring_segment_is_free_after_it_was_read() {
    let mut ring = Ring::create(&OPTIONS).unwrap();
    for sequence in 0..10 {
        let own = take(&ring, 1, sequence);
        append(&ring, own, sequence as u8);
        ring.segment(own).state.store(SEALED, Ordering::Release);
        assert_eq!(drained(&mut ring), [(1, vec![sequence as u8])]);
    }
}

#[test]
fn the_ring_segment_of_a_killed_thread_is_read_and_freed() {
    let mut ring = Ring::create(&OPTIONS).unwrap();
    let own = take(&ring, 1, 0);
    append(&ring, own, 7);
    drained(&mut ring);
    append(&ring, own, 8);
    assert_eq!(ring.owners().len(), 1);
    ring.seal_segments_of(|_| true);
    assert_eq!(drained(&mut ring), [(1, vec![8])]);
    assert!(ring.owners().is_empty() && ring.free_share() == 1.0);
}

#[test]
fn the_last_ring_segment_of_a_thread_does_not_count_as_full() {
    let mut ring = Ring::create(&OPTIONS).unwrap();
    assert_eq!(ring.filled_pages(), 0);
    ring.header().threads.store(1, Ordering::Relaxed);
    for (sequence, filled) in [(0, 0), (1, 4), (2, 8)] {
        let own = take(&ring, 1, sequence);
        append(&ring, own, 1);
        drained(&mut ring);
        assert_eq!(ring.filled_pages(), filled);
    }
}
