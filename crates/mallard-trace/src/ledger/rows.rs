//! Collects rows of the table `events` until they are written, in a vector for each column.

use crate::tables::{Column, Values, GROUP_ROWS};

/// A growing column of numbers with nulls.
#[derive(Default)]
pub(super) struct Optional<T> {
    values: Vec<T>,
    present: Vec<i16>,
}

impl<T> Optional<T> {
    #[inline]
    pub fn push(&mut self, value: Option<T>) {
        self.present.push(i16::from(value.is_some()));
        self.values.extend(value);
    }
}

/// Declares the columns of the table, in the order of the schema.
macro_rules! event_rows {
    ($($name:ident: $vector:ident $number:ident $kind:ident,)*) => {
        /// Rows of `events` that are not written yet.
        pub(super) struct EventRows {
            $(pub $name: $vector<$number>,)*
        }

        impl EventRows {
            pub fn new() -> Self {
                EventRows { $($name: event_rows!(room $vector),)* }
            }

            pub fn into_columns(self) -> Vec<Column> {
                vec![$(event_rows!(column $vector $kind self.$name),)*]
            }
        }
    };
    // A column without nulls reserves memory for a whole row group, so that it never moves while it
    // grows.
    (room Vec) => { Vec::with_capacity(GROUP_ROWS) };
    (room Optional) => { Optional::default() };
    (column Vec $kind:ident $of:expr) => {
        Column { values: Values::$kind($of), present: None }
    };
    (column Optional $kind:ident $of:expr) => {
        Column { values: Values::$kind($of.values), present: Some($of.present) }
    };
}

event_rows! {
    proc: Vec i32 I32,
    tid: Vec i32 I32,
    t_ns: Vec i64 I64,
    dur_ns: Vec i32 I32,
    op: Vec i32 I32,
    flags: Vec i32 I32,
    size: Vec i64 I64,
    align: Vec i32 I32,
    alloc: Vec i64 I64,
    old_alloc: Optional i64 I64,
    addr: Optional i64 I64,
    stack: Optional i32 I32,
    fresh: Vec i32 I32,
}
