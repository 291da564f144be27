//! Tests which regions are found in traces with a few events.

use crate::support;
use crate::support::replay::{Script, MAIN, NODE, PARSE, WORKER};
use mallard_trace::format::{op, Header};
use mallard_trace::regions::{file, find, Limits, Region, Regions};
use mallard_trace::replay::End;
use mallard_trace::tables::schema::REGIONS;
use mallard_trace::tables::Table;

const OTHER: &[&str] = &["main", "other"];

fn found(script: Script) -> Regions {
    let folder = tempfile::tempdir().unwrap();
    find(&script.trace(folder.path()), Limits::default()).unwrap()
}

/// Returns the region with this function and this kind of end.
fn region(regions: &Regions, function: &str, ends: End) -> Region {
    let of = |region: &&Region| region.function == function && region.ends == ends;
    let names = || regions.all.iter().map(|region| (&region.function, region.ends));
    let found = regions.all.iter().find(of);
    found
        .unwrap_or_else(|| panic!("{function} is not in {:?}", names().collect::<Vec<_>>()))
        .clone()
}

/// Adds `count` calls of `parse_document`, each of which frees all its blocks. Between the calls, `main`
/// allocates.
fn documents(script: &mut Script, count: u64) {
    for document in 0..count {
        let at = 0x10_0000 + 0x1000 * document;
        script.keeps(1).malloc(1, at, 64, PARSE).malloc(1, at + 0x100, 100 + document, NODE);
        script.wait(50).free(1, at + 0x100, PARSE).wait(50).free(1, at, PARSE);
        script.malloc(1, at + 0x200, 8, MAIN).free(1, at + 0x200, MAIN);
    }
}

#[test]
fn a_function_that_frees_all_its_blocks_is_the_first_region() {
    let mut script = Script::new();
    documents(&mut script, 40);
    let regions = found(script);
    let first = &regions.all[0];
    assert_eq!((first.function.as_str(), first.ends), ("parse_document", End::Sure));
    assert_eq!((first.instances, first.blocks, first.escapes), (40, 80, 0));
    assert_eq!((first.inputs, first.threads, first.unfinished), (40, 1, 0));
    assert_eq!((first.total.max, first.peak.p50), (203.0, 183.0));
    assert_eq!((first.calls, first.final_frees, first.foreign_frees), (160, 80, 0));
    assert_eq!(first.freed_by, ["parse_document"]);
    assert_eq!(first.utilisation, 1.0);
    assert_eq!((first.sizes, first.one_size_share), (41, 0.5));
    assert_eq!(first.teardown_ns, 40.0 * 51.0);
    assert_eq!(first.lanes.len(), 40);
    assert!(first.lanes.windows(2).all(|pair| pair[0].t1 < pair[1].t0));
    assert!(first.variation_bits > 1.0, "{first:?}");
}

#[test]
fn the_block_sizes_of_a_region_are_updated_by_realloc() {
    let mut script = Script::new();
    for document in 0..40u64 {
        let at = 0x10_0000 + 0x1000 * document;
        script.keeps(1).malloc(1, at, 64, PARSE).realloc(1, at, at, 100, PARSE);
        script.wait(50).free(1, at, PARSE);
        script.malloc(1, at + 0x200, 8, MAIN).free(1, at + 0x200, MAIN);
    }
    let parse = region(&found(script), "parse_document", End::Sure);
    // All blocks have 100 bytes in the end, but they had 64 before, so a pool cannot serve them.
    assert_eq!((parse.sizes, parse.one_size_share, parse.variation_bits), (2, 1.0, 0.0));
}

#[test]
fn a_block_that_outlives_the_function_escapes_and_its_site_is_named() {
    let mut script = Script::new();
    documents(&mut script, 40);
    script.malloc(1, 0x90_0000, 77, NODE).malloc(1, 0x91_0000, 8, MAIN);
    script.free(1, 0x90_0000, MAIN);
    let parse = region(&found(script), "parse_document", End::Sure);
    assert_eq!((parse.escapes, parse.escape_bytes, parse.instances), (1, 77, 41));
    let site = &parse.escape_sites[0];
    assert_eq!((site.function.as_str(), site.blocks, site.bytes), ("make_node(int)", 1, 77));
    assert_eq!(parse.lanes.last().unwrap().escapes, 1);
}

#[test]
fn calls_in_a_loop_without_other_events_are_separated_only_where_all_blocks_are_freed() {
    let mut script = Script::new();
    for document in 0..50 {
        let at = 0x10_0000 + 0x1000 * document;
        script.malloc(1, at, 64, PARSE).malloc(1, at + 0x100, 100, NODE);
        script.free(1, at + 0x100, PARSE).free(1, at, PARSE);
    }
    let regions = found(script);
    assert_eq!(region(&regions, "parse_document", End::Drained).instances, 50);
    let sure = region(&regions, "parse_document", End::Sure);
    assert_eq!((sure.instances, sure.escapes, sure.peak.max), (1, 0, 164.0));
    assert_eq!(regions.all[0].ends, End::Drained);
}

#[test]
fn frees_by_other_threads_are_counted_separately() {
    let mut script = Script::new();
    for document in 0..40 {
        let at = 0x10_0000 + 0x1000 * document;
        script.keeps(1).malloc(1, at, 64, PARSE).malloc(1, at + 8, 64, PARSE).free(2, at, WORKER);
        script.malloc(1, at + 0x200, 8, MAIN).free(2, at + 8, WORKER).free(1, at + 0x200, MAIN);
    }
    let parse = region(&found(script), "parse_document", End::Sure);
    assert_eq!((parse.foreign_frees, parse.escapes, parse.foreign_escapes), (80, 40, 40));
}

#[test]
fn a_thread_exit_inside_a_region_ends_the_region() {
    let mut script = Script::new();
    let inside = &["start_thread", "parse_document"];
    for thread in 1..=35 {
        let at = 0x10_0000 + 0x1000 * u64::from(thread);
        script.malloc(thread, at, 64, inside).malloc(thread, at + 0x100, 32, inside);
        script.free(thread, at, inside);
        script.free(99, at + 0x100, WORKER); // the thread exited with its previous event
    }
    let parse = region(&found(script), "parse_document", End::Sure);
    assert_eq!((parse.instances, parse.threads, parse.unfinished), (35, 35, 0));
    assert_eq!((parse.escapes, parse.foreign_escapes), (35, 35));
}

#[test]
fn a_recursive_function_has_an_instance_for_the_outermost_call() {
    let mut script = Script::new();
    let twice = &["main", "parse_document", "outer", "parse_document"];
    for document in 0..40 {
        let at = 0x10_0000 + 0x1000 * document;
        script.keeps(1).malloc(1, at, 64, PARSE).malloc(1, at + 0x100, 16, twice);
        script.free(1, at + 0x100, PARSE).free(1, at, PARSE).malloc(1, at + 0x200, 8, OTHER);
        script.free(1, at + 0x200, OTHER);
    }
    let parse = region(&found(script), "parse_document", End::Sure);
    assert_eq!((parse.instances, parse.blocks, parse.escapes), (40, 80, 0));
}

#[test]
fn unnamed_functions_are_regions_only_if_no_function_has_a_name() {
    let mut script = Script::new();
    let inside = &["main", "libx.so+0x77"];
    for call in 0..40 {
        let at = 0x10_0000 + 0x1000 * call;
        script.keeps(1).malloc(1, at, 64, inside).free(1, at, inside);
        script.malloc(1, at + 0x200, 8, MAIN).free(1, at + 0x200, MAIN);
    }
    let regions = found(script);
    let place = region(&regions, "libx.so+0x77", End::Sure);
    assert_eq!((place.instances, place.escapes), (40, 0));
    assert!(regions.notes[0].contains("no names"), "{:?}", regions.notes);
    let mut script = Script::new();
    script.malloc(1, 0x10, 64, inside).malloc(1, 0x20, 64, PARSE);
    assert!(found(script).all.iter().all(|region| region.function == "parse_document"));
}

#[test]
fn a_sampled_trace_has_a_note_instead_of_regions() {
    let mut script = Script::with(&Header { sample_bytes: 1000, ..support::header() });
    documents(&mut script, 40);
    let regions = found(script);
    assert!(regions.all.is_empty() && regions.notes[0].contains("samples"), "{:?}", regions.notes);
}

#[test]
fn a_trace_without_events_has_no_regions() {
    let regions = found(Script::new());
    assert!(regions.all.is_empty() && regions.total_bytes == 0.0);
}

#[test]
fn region_blocks_beyond_the_limit_count_as_never_freed() {
    let mut script = Script::new();
    documents(&mut script, 40);
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { blocks: 1, ..Limits::default() };
    let regions = find(&script.trace(folder.path()), limits).unwrap();
    let parse = region(&regions, "parse_document", End::Sure);
    assert_eq!((parse.instances, parse.blocks, parse.escapes), (40, 80, 40));
    assert!(regions.notes.iter().any(|note| note.contains("no room")), "{:?}", regions.notes);
}

#[test]
fn marks_separate_calls_that_look_like_one_on_call_stacks() {
    let mut script = Script::new();
    script.malloc(1, 0x10, 8, MAIN);
    for token in 0..40u64 {
        // Each call frees the token of the previous call, and `main` allocates nothing in between.
        let at = 0x10_0000 + 0x1000 * token;
        script.mark(1, op::REGION_BEGIN, "next_token").malloc(1, at, 10 + token, PARSE);
        if token > 0 {
            script.free(1, at - 0x1000, PARSE);
        }
        script.mark(1, op::REGION_END, "next_token");
    }
    script.free(1, 0x10_0000 + 0x1000 * 39, PARSE).free(1, 0x10, MAIN);
    let regions = found(script);
    let marked = region(&regions, "next_token", End::Exact);
    assert_eq!((marked.instances, marked.blocks, marked.escapes), (40, 40, 40));
    assert_eq!(marked.escape_sites[0].function, "parse_document");
    let parse = region(&regions, "parse_document", End::Sure);
    assert_eq!((parse.instances, parse.escapes), (1, 0));
}

#[test]
fn a_marked_region_left_by_a_jump_ends_with_its_outer_region() {
    let mut script = Script::new();
    script.malloc(1, 0x10, 8, MAIN);
    for request in 0..40u64 {
        let at = 0x10_0000 + 0x1000 * request;
        script.mark(1, op::REGION_BEGIN, "request").mark(1, op::REGION_BEGIN, "parse");
        script.malloc(1, at, 64, PARSE).free(1, at, PARSE); // as after a longjmp
        script.mark(1, op::REGION_END, "request").mark(1, op::REGION_END, "parse");
        script.malloc(1, at, 64, PARSE).free(1, at, PARSE);
    }
    let regions = found(script);
    for name in ["request", "parse"] {
        let marked = region(&regions, name, End::Exact);
        assert_eq!((marked.instances, marked.blocks, marked.escapes), (40, 40, 0), "{name}");
    }
}

#[test]
fn the_region_table_is_computed_once_and_saved_in_the_trace() {
    let mut script = Script::new();
    documents(&mut script, 40);
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let trace = script.trace(folder.path());
    let path = file(&trace, scratch.path()).unwrap();
    assert_eq!(path, trace.folder().join("regions.parquet"));
    let table = Table::open(trace.folder(), &REGIONS).unwrap();
    let regions = find(&trace, Limits::default()).unwrap();
    assert_eq!(table.rows(), regions.all.len() as u64);
    assert_eq!(table.texts("function").unwrap()[0], "parse_document");
    assert_eq!(table.texts("ends").unwrap()[0], "sure");
    assert_eq!(table.i64s("instances").unwrap()[0], 40);
    assert_eq!(table.f64s("peak_p50").unwrap()[0], Some(183.0));
    let written = std::fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(file(&trace, scratch.path()).unwrap(), path);
    assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), written);
    // A file that is not a table of regions is replaced, and nothing else remains in the directory.
    std::fs::write(&path, "no table").unwrap();
    file(&trace, scratch.path()).unwrap();
    assert_eq!(Table::open(trace.folder(), &REGIONS).unwrap().rows(), table.rows());
    let names = std::fs::read_dir(trace.folder()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with('.')));
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}
