//! Defines the rows of the table `sites`.

use crate::error::Result;
use crate::measures::Estimate;
use crate::tables::schema::site_columns;
use crate::tables::{Column, Table};
use serde::{Deserialize, Serialize};

/// Declares the row and its columns, in the order of the schema.
macro_rules! site_row {
    (
        numbers { $($(#[$number_doc:meta])* $number:ident $encoding:ident,)* }
        lives { $($(#[$life_doc:meta])* $life:ident,)* }
        estimates { $($(#[$doc:meta])* $estimate:ident,)* }
    ) => {
        /// The counts and measures of the blocks that one call stack allocated. In a sampled
        /// stream, counts and bytes are estimates for the whole program. Times are in nanoseconds.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct SiteRow {
            /// The call stack: a node of the table `stacks`. 0 means an unknown call stack or, in
            /// the totals of a trace, the whole program.
            pub stack: i32,
            $($(#[$number_doc])* pub $number: i64,)*
            $($(#[$life_doc])* pub $life: Option<i64>,)*
            /// The share of this call stack in the bytes in use at the peak of the whole program,
            /// from 0 to 1.
            pub peak_share: f64,
            $($(#[$doc])* pub $estimate: Estimate,)*
        }

        /// Makes the columns of the table `sites` from rows.
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

        /// Reads all rows of the table `sites`.
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
                let ends = table.f64s(concat!(stringify!($estimate), "_lo"))?.into_iter().zip(table.f64s(concat!(stringify!($estimate), "_hi"))?);
                let values = values.into_iter().zip(ends).zip(table.i64s(concat!(stringify!($estimate), "_n"))?);
                for (row, ((value, (low, high)), n)) in rows.iter_mut().zip(values) {
                    row.$estimate = Estimate { value, low, high, n };
                }
            )*
            Ok(rows)
        }
    };
}

site_columns!(site_row);

impl SiteRow {
    /// Removes the measures that are computed from the addresses of blocks.
    pub(crate) fn forget_addresses(&mut self) {
        for measure in [&mut self.l, &mut self.f] {
            *measure = Estimate { n: measure.n, ..Estimate::default() };
        }
    }
}
