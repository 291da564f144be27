//! The examples of the README and of the documentation, compiled as tests.

#[doc = include_str!("../README.md")]
mod readme {}

#[doc = include_str!("../docs/rust.md")]
mod chapter {}

#[doc = include_str!("../docs/start.md")]
mod start {}
