//! Examples of pages that are not this crate's own documentation, as tests.

#[doc = include_str!("../README.md")]
mod readme {}

#[doc = include_str!("../docs/rust.md")]
mod chapter {}
