//! The numbers that an export can count for each call stack.

use mallard_trace::SiteRow;

/// What an export counts for each call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Weight {
    /// Bytes allocated
    Bytes,
    /// Blocks allocated
    Blocks,
    /// Bytes in use at the peak of the program
    Peak,
    /// Blocks freed before their thread allocated another
    Short,
    /// Bytes never freed
    Never,
    /// Blocks freed by another thread
    Cross,
}

impl Weight {
    /// All weights, in the order in which exports list them.
    pub const ALL: [Weight; 6] =
        [Weight::Bytes, Weight::Blocks, Weight::Peak, Weight::Short, Weight::Never, Weight::Cross];

    /// Returns the bytes or blocks of a call stack that the weight counts.
    pub fn of(self, site: &SiteRow) -> i64 {
        let count = match self {
            Weight::Bytes => site.bytes,
            Weight::Blocks => site.allocs,
            Weight::Peak => site.at_peak_bytes,
            Weight::Short => site.short_lived,
            Weight::Never => site.live_bytes,
            Weight::Cross => site.cross_thread_frees,
        };
        count.max(0) // a corrupt trace may contain a negative number
    }

    /// Returns whether the weight counts bytes instead of blocks.
    pub fn is_bytes(self) -> bool {
        matches!(self, Weight::Bytes | Weight::Peak | Weight::Never)
    }

    /// Returns the title of the weight for readers.
    pub fn title(self) -> &'static str {
        match self {
            Weight::Bytes => "bytes allocated",
            Weight::Blocks => "blocks allocated",
            Weight::Peak => "bytes at the peak",
            Weight::Short => "short-lived blocks",
            Weight::Never => "bytes never freed",
            Weight::Cross => "blocks freed by another thread",
        }
    }
}
