//! What `Checked` finds, and how it is told.

use core::alloc::Layout;
use core::fmt;

/// What a caller did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The block was free already.
    DoubleFree,
    /// No block of this allocator, or one that went back long ago.
    ForeignFree,
    /// An address inside a block.
    InteriorFree,
    /// Freed with another size or alignment than it was allocated with.
    WrongLayout,
    /// Somebody wrote behind the block.
    Overrun,
    /// Somebody wrote in front of it.
    Underrun,
    /// Somebody wrote into a freed block.
    WriteAfterFree,
    /// Blocks in use when the allocator ended.
    Leak,
}

/// A block that a fault is about, as the books have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultyBlock {
    /// Its first byte.
    pub data: *const u8,
    /// As it was asked for.
    pub layout: Layout,
    /// Counts the allocations of this allocator, from 1.
    pub number: u64,
}

/// One fault, as long as the call that tells of it lasts. As text it has three lines: what
/// happened, what state things are in, what to type next; of a leak there are some lines more.
#[derive(Clone, Copy, Debug)]
pub struct Fault<'a> {
    /// What it is.
    pub kind: FaultKind,
    /// The name of the allocator.
    pub allocator: &'a str,
    /// What was freed, or the first byte that is wrong.
    pub at: *const u8,
    /// What the free said, where that was wrong.
    pub said: Option<Layout>,
    /// How many blocks leaked, else 0.
    pub count: usize,
    /// And their bytes.
    pub bytes: usize,
    /// The block; none if foreign; of leaks the first few, in the order they were allocated.
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
            FaultKind::Leak => "`Traced` around it tells of each allocation, by its number",
        }
    }

    fn title(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, name) = (self.at, self.allocator);
        f.write_str("mallard: ")?;
        match self.kind {
            FaultKind::DoubleFree => write!(f, "double free of {at:p} in"),
            FaultKind::ForeignFree => write!(f, "free of {at:p}, which is no block of"),
            FaultKind::InteriorFree => write!(f, "free of {at:p}, which is inside a block of"),
            FaultKind::WrongLayout => write!(f, "free of {at:p} with a wrong layout in"),
            FaultKind::Overrun => write!(f, "write to {at:p}, behind a block of"),
            FaultKind::Underrun => write!(f, "write to {at:p}, in front of a block of"),
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
                    " is aligned to {}; the free said {} bytes aligned to {}; it is freed",
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
                "  it was not given out here, or went back long ago; this call changed nothing\n",
            )?;
        }
        if self.kind == FaultKind::Leak {
            writeln!(f, "  {} blocks are in use, first these:", self.count)?;
        }
        for block in self.blocks {
            self.state(f, block)?;
        }
        write!(f, "  help: {}", self.help())
    }
}

/// What a [`Checked`](crate::Checked) does by default: panics with the fault as its message.
pub fn panic_at_faults(fault: &Fault<'_>) {
    panic!("{fault}");
}

/// Writes the fault to stderr, and the program goes on.
#[cfg(feature = "std")]
pub fn print_faults(fault: &Fault<'_>) {
    std::eprintln!("{fault}");
}
