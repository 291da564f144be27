//! The examples of the README and of the guide, compiled as tests.

#[doc = include_str!("../README.md")]
mod readme {}

#[doc = include_str!("../docs/rust.md")]
mod chapter {}
