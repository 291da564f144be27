//! Sources, and how much is taken from them.

mod common;

use mallard::{Buffer, Full, Growth, Null, Source, Statistics};
use std::alloc::Layout;
use std::mem::MaybeUninit;

#[test]
fn a_buffer_gives_its_bytes_aligned_and_takes_back_the_last() {
    let mut bytes = [MaybeUninit::uninit(); 256];
    let buffer = Buffer::new(&mut bytes);
    let layout = Layout::from_size_align(40, 32).unwrap();
    let first = buffer.try_take(layout).unwrap();
    let second = buffer.try_take(layout).unwrap();
    assert_eq!(second.data.addr().get() % 32, 0);
    assert!(second.data.addr().get() >= first.data.addr().get() + 40);
    // SAFETY: both were taken from it.
    unsafe { buffer.give(second) };
    assert_eq!(buffer.try_take(layout).unwrap().data, second.data);
    assert!(buffer.try_take(Layout::from_size_align(300, 1).unwrap()).is_none());
}

#[test]
fn null_gives_nothing() {
    assert!(Null.try_take(Layout::new::<u8>()).is_none());
}

#[test]
fn a_growth_is_single_when_its_limit_is_its_first_step() {
    assert!(Growth::none(100).is_single());
    assert!(!Growth::fixed(100).is_single());
    assert!(Growth::fixed(100).limit(100).is_single());
}

#[test]
fn full_says_what_to_do_and_has_the_value() {
    let error = Full(String::from("mine"));
    assert!(error.to_string().contains("help: "));
    assert_eq!(error.into_inner(), "mine");
}

#[test]
fn statistics_are_one_json_object() {
    let mut text = String::new();
    Statistics { chunks: 3, ..Default::default() }.write_json(&mut text).unwrap();
    assert!(text.starts_with("{\"blocks_live\":0,"));
    assert!(text.contains("\"chunks\":3"));
    assert!(text.ends_with('}'));
}
