//! Tests that the blocks derived from the events of a trace agree with a model.

use crate::support::blocks::program;
use crate::support::run::seeds;
use crate::support::trace_of;
use mallard_trace::allocs;
use mallard_trace::tables::schema::{ALLOCS, EVENTS};

#[test]
fn blocks_derived_from_events_equal_those_of_a_model() {
    for seed in seeds(60) {
        let (stream, expected) = program(seed);
        let (_folder, trace) = trace_of(&stream);
        let events = trace.table(&EVENTS).unwrap();
        let mut rows: Vec<Vec<i64>> = vec![Vec::new(); ALLOCS.fields.len()];
        allocs::derive(&events, &mut |columns| {
            for (all, column) in rows.iter_mut().zip(columns) {
                all.extend(column.to_i64().unwrap());
            }
            true
        })
        .unwrap();
        let index = |name| ALLOCS.fields.iter().position(|field| field.name == name).unwrap();
        let column = |name| &rows[index(name)];
        assert_eq!(column("alloc").len(), expected.len(), "seed {seed}");
        for (row, &alloc) in column("alloc").iter().enumerate() {
            let block = &expected[alloc as usize];
            let at = |name| column(name)[row];
            assert_eq!((at("t0"), at("t1")), (block.t0, block.t1), "seed {seed}");
            assert_eq!((at("tid0"), at("tid1")), (block.tid0, block.tid1), "seed {seed}");
            assert_eq!((at("size0"), at("addr")), (block.first_size, block.addr), "seed {seed}");
            assert_eq!(at("size"), block.size, "seed {seed}");
        }
    }
}
