//! The only code that calls the operating system. Works for Linux on 64-bit machines.

mod pages;
mod system;

pub use pages::{Huge, Pages, PagesOptions};
pub use system::SystemError;
pub(crate) use system::*;
