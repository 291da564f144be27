//! Atomics for shared code: the types of `core`, or loom's types while a model is checked.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --lib` runs the models. Loom tries every order in which
//! the steps of the threads can happen. Only this file decides which atomics shared code uses.

/// The atomic types.
#[allow(unused_imports)] // each feature uses some of them
pub(crate) mod atomic {
    #[cfg(not(loom))]
    pub(crate) use core::sync::atomic::*;
    #[cfg(loom)]
    pub(crate) use loom::sync::atomic::*;
}

/// Types for models. A `TrackedCell` fails the model if two threads can access the cell
/// simultaneously.
#[cfg(all(test, loom))]
pub(crate) use loom::{cell::UnsafeCell as TrackedCell, model, sync, thread};
