//! The rows of the table `sites`.

use crate::duck::Estimate;
use crate::error::Result;
use crate::tables::{Column, Table};
use serde::{Deserialize, Serialize};

/// Declares the row and its columns, in the order of the schema.
macro_rules! site_row {
    (
        numbers { $($(#[doc = $number_doc:literal])* $number:ident,)* }
        lives { $($(#[doc = $life_doc:literal])* $life:ident,)* }
        estimates { $($(#[doc = $doc:literal])* $estimate:ident $low:literal $high:literal $n:literal,)* }
    ) => {
        /// The counts and measures of the blocks that one call stack allocated. In a sampled stream,
        /// counts and bytes are estimates of the whole program. Times are nanoseconds.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct SiteRow {
            /// The call stack: a node of the table `stacks`. 0: unknown, or, in the totals of a
            /// trace, the whole program.
            pub stack: i32,
            $($(#[doc = $number_doc])* pub $number: i64,)*
            $($(#[doc = $life_doc])* pub $life: Option<i64>,)*
            /// The share of the call stack in the bytes in use at the peak of the whole program, from 0
            /// to 1.
            pub peak_share: f64,
            $($(#[doc = $doc])* pub $estimate: Estimate,)*
        }

        /// Makes the columns of rows.
        pub(crate) fn columns(rows: &[SiteRow]) -> Vec<Column> {
            vec![
                Column::i32(rows.iter().map(|row| row.stack)),
                $(Column::i64(rows.iter().map(|row| row.$number)),)*
                $(Column::i64_or_null(rows.iter().map(|row| row.$life)),)*
                Column::f64(rows.iter().map(|row| row.peak_share)),
                $(
                    Column::f64_or_null(rows.iter().map(|row| row.$estimate.value)),
                    Column::f64_or_null(rows.iter().map(|row| row.$estimate.low)),
                    Column::f64_or_null(rows.iter().map(|row| row.$estimate.high)),
                    Column::i64(rows.iter().map(|row| row.$estimate.n)),
                )*
            ]
        }

        /// Reads all rows.
        pub(crate) fn read(table: &Table) -> Result<Vec<SiteRow>> {
            let stacks = table.i64s("stack")?;
            let stack = |stack| SiteRow { stack: stack as i32, ..SiteRow::default() };
            let mut rows: Vec<SiteRow> = stacks.into_iter().map(stack).collect();
            $(
                for (row, value) in rows.iter_mut().zip(table.i64s(stringify!($number))?) {
                    row.$number = value;
                }
            )*
            $(
                for (row, value) in rows.iter_mut().zip(table.i64s(stringify!($life))?) {
                    row.$life = Some(value).filter(|&ns| ns >= 0);
                }
            )*
            for (row, value) in rows.iter_mut().zip(table.f64s("peak_share")?) {
                row.peak_share = value.unwrap_or_default();
            }
            $(
                let values = table.f64s(stringify!($estimate))?;
                let ends = table.f64s($low)?.into_iter().zip(table.f64s($high)?);
                let values = values.into_iter().zip(ends).zip(table.i64s($n)?);
                for (row, ((value, (low, high)), n)) in rows.iter_mut().zip(values) {
                    row.$estimate = Estimate { value, low, high, n };
                }
            )*
            Ok(rows)
        }
    };
}

site_row! {
    numbers {
        /// Blocks allocated.
        allocs,
        /// Bytes allocated, including growth by realloc.
        bytes,
        /// Blocks freed.
        frees,
        /// Calls that failed.
        failed,
        /// Calls of realloc for blocks of the call stack.
        reallocs,
        /// Blocks that were never freed.
        live_allocs,
        /// Bytes of the blocks that were never freed.
        live_bytes,
        /// The peak of the site's bytes in use.
        peak_bytes,
        /// Blocks in use at the moment of `peak_bytes`.
        peak_allocs,
        /// The moment of `peak_bytes`.
        peak_t,
        /// Bytes in use at the peak of the whole program.
        at_peak_bytes,
        /// Blocks freed by a thread other than the thread that allocated them.
        cross_thread_frees,
        /// Blocks freed before their thread allocated another block.
        short_lived,
        /// Time of the calls whose duration was measured.
        call_ns,
        /// Number of calls whose duration was measured.
        timed_calls,
        /// The smallest size that a block had.
        size_min,
        /// The median size of the blocks, each with its last size, rounded up to a size class.
        size_p50,
        /// The 90th percentile of the sizes, rounded up to a size class.
        size_p90,
        /// The 99th percentile of the sizes, rounded up to a size class.
        size_p99,
        /// The largest size that a block had.
        size_max,
        /// Number of different alignments that were asked for.
        alignments,
    }
    lives {
        /// The median lifetime of the freed blocks, at most 25 % too large.
        life_p50,
        /// The 90th percentile of the lifetimes, at most 25 % too large.
        life_p90,
        /// The 99th percentile of the lifetimes, at most 25 % too large.
        life_p99,
    }
    estimates {
        /// Density: see [`crate::duck`].
        d "d_lo" "d_hi" "d_n",
        /// Variation.
        v "v_lo" "v_hi" "v_n",
        /// Locality.
        l "l_lo" "l_hi" "l_n",
        /// Utilization.
        u "u_lo" "u_hi" "u_n",
        /// Contention.
        c "c_lo" "c_hi" "c_n",
        /// Fragmentability.
        f "f_lo" "f_hi" "f_n",
    }
}

impl SiteRow {
    /// Removes the measures that are computed from the addresses of blocks.
    pub(crate) fn forget_addresses(&mut self) {
        for measure in [&mut self.l, &mut self.f] {
            *measure = Estimate { n: measure.n, ..Estimate::default() };
        }
    }
}
