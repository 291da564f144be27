//! The memory errors that `Checked` reports, and their messages.

use core::alloc::Layout;
use core::fmt;

/// The kind of a memory error.
///
/// ```
/// use mallard::{Checked, Fault, FaultKind, Multipool};
/// let leaks_only = |fault: &Fault<'_>| assert_eq!(fault.kind, FaultKind::Leak, "{fault}");
/// let orders = Checked::with_handler("orders", Multipool::new(), leaks_only);
/// # let _ = orders;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The block was free already.
    DoubleFree,
    /// The freed address is not a block of this allocator, or the block has left the quarantine.
    ForeignFree,
    /// The freed address is inside a block.
    InteriorFree,
    /// The size or alignment passed to the free differs from the size or alignment of the allocation.
    WrongLayout,
    /// Bytes after the block were overwritten.
    Overrun,
    /// Bytes before the block were overwritten.
    Underrun,
    /// Bytes of a freed block were overwritten.
    WriteAfterFree,
    /// Blocks were in use when the allocator was dropped.
    Leak,
}

/// A block that a reported error concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultyBlock {
    /// The first byte of the block.
    pub data: *const u8,
    /// The layout that the block was allocated with.
    pub layout: Layout,
    /// The number of the allocation in this allocator. The first allocation has number 1.
    pub number: u64,
}

/// One memory error, passed to the handler of a [`Checked`](crate::Checked).
///
/// The text of a fault has three lines, for what happened, the state, and what to do next. The text
/// of a leak has one more line for each block shown.
///
/// ```
/// use mallard::{Checked, Fault, FaultKind, Multipool};
/// let ignore_leaks = |fault: &Fault<'_>| assert_eq!(fault.kind, FaultKind::Leak, "{fault}");
/// let orders = Checked::with_handler("orders", Multipool::new(), ignore_leaks);
/// # let _ = orders;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Fault<'a> {
    /// The kind of the error.
    pub kind: FaultKind,
    /// The name of the allocator.
    pub allocator: &'a str,
    /// The address that was freed, or the first overwritten byte.
    pub at: *const u8,
    /// The layout passed to the free, if it differs from the layout of the allocation.
    pub said: Option<Layout>,
    /// The number of leaked blocks. 0 for other errors.
    pub count: usize,
    /// The size of all leaked blocks in bytes. 0 for other errors.
    pub bytes: usize,
    /// The block that the error concerns. Empty for a free of a foreign address. For a leak, the
    /// first few blocks in allocation order.
    pub blocks: &'a [FaultyBlock],
}

impl Fault<'_> {
    fn help(&self) -> &'static str {
        match self.kind {
            FaultKind::DoubleFree
            | FaultKind::ForeignFree
            | FaultKind::InteriorFree
            | FaultKind::WrongLayout => "RUST_BACKTRACE=1 shows who called deallocate",
            FaultKind::Overrun | FaultKind::Underrun | FaultKind::WriteAfterFree => {
                "`cargo +nightly miri test`, -Zsanitizer=address or valgrind stop at the write"
            }
            FaultKind::Leak => {
                "wrap the allocator in `Traced` to see each allocation; blocks are numbered from 1"
            }
        }
    }

    fn title(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, name) = (self.at, self.allocator);
        f.write_str("mallard: ")?;
        match self.kind {
            FaultKind::DoubleFree => write!(f, "double free of {at:p} in"),
            FaultKind::ForeignFree => write!(f, "free of {at:p}, which is not a block of"),
            FaultKind::InteriorFree => write!(f, "free of {at:p}, which is inside a block of"),
            FaultKind::WrongLayout => write!(f, "free of {at:p} with a wrong layout in"),
            FaultKind::Overrun => write!(f, "write to {at:p}, past the end of a block of"),
            FaultKind::Underrun => write!(f, "write to {at:p}, before a block of"),
            FaultKind::WriteAfterFree => {
                write!(f, "write to {at:p}, which is in a freed block of")
            }
            FaultKind::Leak => write!(f, "leak of {} bytes in", self.bytes),
        }?;
        writeln!(f, " \"{name}\"")
    }

    fn state(&self, f: &mut fmt::Formatter<'_>, block: &FaultyBlock) -> fmt::Result {
        let FaultyBlock { data, layout, number } = block;
        let margin = if self.kind == FaultKind::Leak { "    " } else { "  " };
        write!(f, "{margin}block {number} ({} bytes at {data:p})", layout.size())?;
        match self.kind {
            FaultKind::DoubleFree => {
                f.write_str(" was free already; this call changed nothing")?;
            }
            FaultKind::InteriorFree => f.write_str(" is in use; this call changed nothing")?,
            FaultKind::WrongLayout => {
                let said = self.said.unwrap_or(*layout);
                write!(
                    f,
                    " is aligned to {}; the call passed {} bytes aligned to {}; the block was freed",
                    layout.align(),
                    said.size(),
                    said.align()
                )?;
            }
            FaultKind::Overrun | FaultKind::Underrun | FaultKind::WriteAfterFree => {
                let byte = self.at.addr().wrapping_sub(data.addr()) as isize;
                write!(f, ": byte {byte} was changed")?;
            }
            FaultKind::ForeignFree | FaultKind::Leak => {}
        }
        f.write_str("\n")
    }
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.title(f)?;
        if self.kind == FaultKind::ForeignFree {
            f.write_str(
                "  the block was not allocated here, or was freed long ago; this call changed nothing\n",
            )?;
        }
        if self.kind == FaultKind::Leak {
            writeln!(f, "  {} blocks are still in use. The first are:", self.count)?;
        }
        for block in self.blocks {
            self.state(f, block)?;
        }
        write!(f, "  help: {}", self.help())
    }
}

/// Panics with the fault as the message. This is the default handler of a
/// [`Checked`](crate::Checked).
pub fn panic_at_faults(fault: &Fault<'_>) {
    panic!("{fault}");
}

/// Prints the error to stderr. If it is the handler of
/// [`Checked::with_handler`](crate::Checked::with_handler), the program continues after the error.
#[cfg(feature = "std")]
pub fn print_faults(fault: &Fault<'_>) {
    std::eprintln!("{fault}");
}
