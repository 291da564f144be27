//! Defines the tables of a trace and their columns.
//!
//! Columns have only types that DuckDB and Spark read in the same way, so there are no unsigned
//! integers. Times are in nanoseconds since the stream was opened. Columns whose value mostly grows
//! are stored as deltas. Columns with few different values have a dictionary. Columns with many
//! different values are stored byte by byte (BYTE_STREAM_SPLIT). DuckDB 2.0, Polars and Arrow
//! support this encoding. `super::Style` describes the encodings for other readers. Each column of
//! `events` has the encoding with the smallest size after zstd, measured with recordings of
//! cc1plus, cmake, git, perl and python.

use super::column::{Column, Values};
use parquet::basic::Type;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 8-bit signed integer.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// Double-precision floating-point number.
    F64,
    /// UTF-8 string.
    Text,
    /// Boolean.
    Bool,
}

impl Kind {
    /// Returns the type that Parquet uses to store the values.
    pub(super) fn physical(self) -> Type {
        match self {
            Kind::I8 | Kind::I16 | Kind::I32 => Type::INT32,
            Kind::I64 => Type::INT64,
            Kind::F64 => Type::DOUBLE,
            Kind::Text => Type::BYTE_ARRAY,
            Kind::Bool => Type::BOOLEAN,
        }
    }
}

/// The encoding in which the values of a column are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// The plain values.
    Plain,
    /// Indices into a dictionary.
    Dictionary,
    /// First the lowest byte of each value, then the second lowest byte of each value, and so on.
    Split,
    /// Differences from the previous value.
    Delta,
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name of the column.
    pub name: &'static str,
    /// The type of the column.
    pub kind: Kind,
    /// Whether a row may have no value.
    pub is_optional: bool,
    /// The encoding of the values.
    pub encoding: Encoding,
}

/// A table: its name and columns.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// The name of the table. Its file, or the directory with its files, has the same name.
    pub name: &'static str,
    /// Whether the table is a directory of several files, with at most 64 Mi rows each.
    pub has_parts: bool,
    /// The columns of the table.
    pub fields: &'static [Field],
}

impl Schema {
    /// Returns the columns of a table without rows.
    pub fn empty(&self) -> Vec<Column> {
        let column = |field: &Field| {
            let values = match field.kind {
                Kind::I8 | Kind::I16 | Kind::I32 => Values::I32(Vec::new()),
                Kind::I64 => Values::I64(Vec::new()),
                Kind::F64 => Values::F64(Vec::new()),
                Kind::Text => Values::Text(Vec::new()),
                Kind::Bool => Values::Bool(Vec::new()),
            };
            Column { values, present: field.is_optional.then(Vec::new) }
        };
        self.fields.iter().map(column).collect()
    }

    /// Returns whether a column of the table contains file paths.
    pub fn has_paths(&self, column: &str) -> bool {
        matches!(
            (self.name, column),
            ("modules", "path")
                | ("frames", "file")
                | ("processes", "path")
                | ("regions", "file" | "module")
        )
    }
}

const fn field(name: &'static str, kind: Kind, encoding: Encoding) -> Field {
    Field { name, kind, is_optional: false, encoding }
}

const fn maybe(name: &'static str, kind: Kind, encoding: Encoding) -> Field {
    Field { name, kind, is_optional: true, encoding }
}

const fn table(name: &'static str, fields: &'static [Field]) -> Schema {
    Schema { name, has_parts: false, fields }
}

const fn in_parts(name: &'static str, fields: &'static [Field]) -> Schema {
    Schema { name, has_parts: true, fields }
}

use Encoding::{Delta, Dictionary, Plain, Split};
use Kind::{Text, F64, I16, I32, I64, I8};

/// The calls of malloc and related functions, and of traced allocators, in time order. Each call
/// has a row.
///
/// A trace has no table of blocks. `docs/decisions/0041-no-table-of-blocks.md` has an SQL view that
/// computes such a table.
pub const EVENTS: Schema = in_parts(
    "events",
    &[
        field("proc", I32, Dictionary),
        field("tid", I32, Dictionary),
        field("t_ns", I64, Delta),
        field("dur_ns", I32, Split),
        field("op", I8, Dictionary),
        field("flags", I16, Dictionary),
        field("size", I64, Split),
        field("align", I8, Dictionary),
        field("alloc", I64, Split),
        maybe("old_alloc", I64, Split),
        maybe("addr", I64, Split),
        maybe("stack", I32, Split),
        field("fresh", I16, Split),
    ],
);

/// The blocks, which [`crate::allocs`] derives from `events`. Traces do not contain this table, but
/// a fleet may, as `docs/decisions/0041-no-table-of-blocks.md` describes. `size0` is the size that
/// the program requested when it allocated the block, and `size` is the size after the last
/// realloc.
pub const ALLOCS: Schema = in_parts(
    "allocs",
    &[
        field("alloc", I64, Delta),
        field("proc", I32, Dictionary),
        field("t0", I64, Delta),
        maybe("t1", I64, Delta),
        field("size", I64, Dictionary),
        field("align", I8, Dictionary),
        maybe("addr", I64, Delta),
        maybe("stack0", I32, Dictionary),
        maybe("stack1", I32, Dictionary),
        field("tid0", I32, Dictionary),
        maybe("tid1", I32, Dictionary),
        field("size0", I64, Dictionary),
    ],
);

/// The prefix tree of call stacks. Node 0 is the empty stack.
pub const STACKS: Schema = table(
    "stacks",
    &[
        field("node", I32, Delta),
        field("parent", I32, Delta),
        field("frame", I32, Dictionary),
        field("depth", I16, Dictionary),
    ],
);

/// The frames of call stacks. A row with `inline_of` is a function that the compiler inlined into
/// the function of the frame `inline_of`.
pub const FRAMES: Schema = table(
    "frames",
    &[
        field("frame", I32, Delta),
        maybe("module", I32, Dictionary),
        maybe("offset", I64, Plain),
        field("func", Text, Dictionary),
        maybe("file", Text, Dictionary),
        maybe("line", I32, Dictionary),
        maybe("inline_of", I32, Delta),
    ],
);

/// The modules: files with code.
pub const MODULES: Schema = table(
    "modules",
    &[
        field("module", I32, Delta),
        field("path", Text, Plain),
        maybe("build_id", Text, Plain),
        field("symbols", Text, Dictionary),
    ],
);

/// The addresses at which each process had modules mapped, and the times.
pub const MAPPINGS: Schema = table(
    "mappings",
    &[
        field("proc", I32, Dictionary),
        field("module", I32, Dictionary),
        field("start", I64, Plain),
        field("end", I64, Plain),
        field("file_offset", I64, Dictionary),
        field("t0", I64, Delta),
        maybe("t1", I64, Delta),
    ],
);

/// The processes of the recording.
pub const PROCESSES: Schema = table(
    "processes",
    &[
        field("proc", I32, Delta),
        field("pid", I64, Plain),
        maybe("parent", I32, Plain),
        field("begins", Text, Dictionary),
        field("path", Text, Dictionary),
        field("t0", I64, Delta),
        maybe("t1", I64, Delta),
        maybe("status", I32, Dictionary),
    ],
);

/// The threads of the recording.
pub const THREADS: Schema = table(
    "threads",
    &[
        field("tid", I32, Delta),
        field("proc", I32, Dictionary),
        field("system_tid", I64, Plain),
        field("name", Text, Dictionary),
        maybe("t0", I64, Delta),
        maybe("t1", I64, Delta),
        field("events", I64, Plain),
        maybe("cpu_ns", I64, Plain),
    ],
);

/// The memory of the processes as the system reported it, about 100 times per second.
pub const SAMPLES: Schema = table(
    "samples",
    &[
        field("t_ns", I64, Delta),
        field("proc", I32, Dictionary),
        field("live_bytes", I64, Delta),
        field("live_blocks", I64, Delta),
        maybe("rss", I64, Delta),
        maybe("pss", I64, Delta),
        maybe("anonymous", I64, Delta),
        maybe("huge", I64, Delta),
        maybe("minor_faults", I64, Delta),
        maybe("major_faults", I64, Delta),
        maybe("user_ns", I64, Delta),
        maybe("system_ns", I64, Delta),
    ],
);

/// The parts of each process's resident memory, as `crate::residency::Parts` defines them. There is
/// a row for each moment at which the parts are known.
pub const MEMORY: Schema = table(
    "memory",
    &[
        field("t_ns", I64, Delta),
        field("proc", I32, Dictionary),
        field("resident", I64, Delta),
        field("live", I64, Delta),
        field("rounding", I64, Delta),
        field("fragmented", I64, Delta),
        field("kept", I64, Delta),
        field("code", I64, Delta),
        field("stacks", I64, Delta),
        field("recorder", I64, Delta),
    ],
);

/// The CPU time of the threads, about 100 times per second.
pub const CPU: Schema = table(
    "cpu",
    &[field("t_ns", I64, Delta), field("tid", I32, Dictionary), field("cpu_ns", I64, Delta)],
);

/// The sites. There is a row for each call stack that allocated: see `crate::site_row::SiteRow`.
pub const SITES: Schema = table("sites", SITE_FIELDS);

/// Calls the macro `$declare` with all columns of `sites` except `stack`: numbers with their
/// encodings, lifetimes, and estimates. Each estimate has a value, two bounds and a number of
/// observations.
macro_rules! site_columns {
    ($declare:ident) => {
        $declare! {
            numbers {
                /// Number of allocated blocks.
                allocs Dictionary,
                /// Bytes allocated, including growth by realloc.
                bytes Dictionary,
                /// Number of freed blocks.
                frees Dictionary,
                /// Calls that failed.
                failed Dictionary,
                /// Calls of realloc for blocks that this call stack allocated.
                reallocs Dictionary,
                /// Blocks that were never freed.
                live_allocs Dictionary,
                /// Bytes of the blocks that were never freed.
                live_bytes Dictionary,
                /// The peak of the bytes in use by blocks of this call stack.
                peak_bytes Dictionary,
                /// Blocks in use at the moment of `peak_bytes`.
                peak_allocs Dictionary,
                /// The moment of `peak_bytes`, in nanoseconds since the stream was opened.
                peak_t Plain,
                /// Bytes in use at the peak of the whole program.
                at_peak_bytes Dictionary,
                /// Blocks freed by a thread other than the thread that allocated them.
                cross_thread_frees Dictionary,
                /// Blocks freed before their thread allocated another block.
                short_lived Dictionary,
                /// Time of the calls whose duration was measured.
                call_ns Dictionary,
                /// Number of calls whose duration was measured.
                timed_calls Dictionary,
                /// The smallest size that a block had.
                size_min Dictionary,
                /// The median of the block sizes, rounded up to a size class. Each block counts
                /// with its last size.
                size_p50 Dictionary,
                /// The 90th percentile of the sizes, rounded up to a size class.
                size_p90 Dictionary,
                /// The 99th percentile of the sizes, rounded up to a size class.
                size_p99 Dictionary,
                /// The largest size that a block had.
                size_max Dictionary,
                /// Number of different alignments that were requested.
                alignments Dictionary,
            }
            lives {
                /// The median of the lifetimes of freed blocks, at most 25 % too large.
                life_p50,
                /// The 90th percentile of the lifetimes, at most 25 % too large.
                life_p90,
                /// The 99th percentile of the lifetimes, at most 25 % too large.
                life_p99,
            }
            estimates {
                /// The measure D, density: see [`crate::measures`].
                d,
                /// The measure V, variation: see [`crate::measures`].
                v,
                /// The measure L, locality: see [`crate::measures`].
                l,
                /// The measure U, utilisation: see [`crate::measures`].
                u,
                /// The measure C, contention: see [`crate::measures`].
                c,
                /// The measure F, fragmentability: see [`crate::measures`].
                f,
            }
        }
    };
}

pub(crate) use site_columns;

/// Declares the fields of `sites`.
macro_rules! site_fields {
    (
        numbers { $($(#[$number_doc:meta])* $number:ident $encoding:ident,)* }
        lives { $($(#[$life_doc:meta])* $life:ident,)* }
        estimates { $($(#[$doc:meta])* $estimate:ident,)* }
    ) => {
        const SITE_FIELDS: &[Field] = &[
            field("stack", I32, Delta),
            $(field(stringify!($number), I64, $encoding),)*
            $(maybe(stringify!($life), I64, Dictionary),)*
            field("peak_share", F64, Dictionary),
            $(
                maybe(stringify!($estimate), F64, Split),
                maybe(concat!(stringify!($estimate), "_lo"), F64, Split),
                maybe(concat!(stringify!($estimate), "_hi"), F64, Split),
                field(concat!(stringify!($estimate), "_n"), I64, Dictionary),
            )*
        ];
    };
}

site_columns!(site_fields);

/// The regions of the program, which [`crate::regions`] finds. The table is made when it is first
/// needed, and the manifest does not list it.
pub const REGIONS: Schema = table(
    "regions",
    &[
        field("function", Text, Plain),
        field("shown", Text, Plain),
        maybe("file", Text, Dictionary),
        maybe("line", I32, Plain),
        field("module", Text, Dictionary),
        field("node", I32, Plain),
        field("ends", Text, Dictionary),
        field("instances", I64, Plain),
        field("unfinished", I64, Plain),
        field("threads", I32, Plain),
        field("inputs", I64, Plain),
        field("blocks", I64, Plain),
        field("bytes", I64, Plain),
        field("calls", I64, Plain),
        field("call_ns", F64, Plain),
        maybe("cpu_ns", F64, Plain),
        field("duration_p50", F64, Plain),
        field("duration_p90", F64, Plain),
        field("duration_max", F64, Plain),
        field("peak_p50", F64, Plain),
        field("peak_p90", F64, Plain),
        field("peak_max", F64, Plain),
        field("total_p50", F64, Plain),
        field("total_p90", F64, Plain),
        field("total_max", F64, Plain),
        field("u", F64, Plain),
        field("v", F64, Plain),
        field("sizes", I32, Plain),
        field("one_size_share", F64, Plain),
        field("escapes", I64, Plain),
        field("escape_bytes", I64, Plain),
        maybe("escape_function", Text, Plain),
        maybe("escape_node", I32, Plain),
        field("foreign_escapes", I64, Plain),
        field("foreign_frees", I64, Plain),
        field("teardown_ns", F64, Plain),
        field("final_frees", I64, Plain),
    ],
);

/// The tables that the manifest of a trace lists, in the same order.
pub const ALL: [&Schema; 11] = [
    &EVENTS, &STACKS, &FRAMES, &MODULES, &MAPPINGS, &PROCESSES, &THREADS, &SAMPLES, &MEMORY, &CPU,
    &SITES,
];
