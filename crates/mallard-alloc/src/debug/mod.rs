//! The adaptor `Checked`, which finds memory errors of a program, and the faults that it reports.

#[cfg(feature = "alloc")]
pub(crate) mod checked;
pub(crate) mod fault;
