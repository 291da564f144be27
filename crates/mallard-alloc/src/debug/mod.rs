//! Finds a program's mistakes with memory: the adaptor `Checked`, and the faults it reports.

#[cfg(feature = "alloc")]
pub(crate) mod checked;
pub(crate) mod fault;
