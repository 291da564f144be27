//! Tests the survey that a report uses. The expected results are computed from the histories of all
//! blocks in random programs.

use crate::support::lives::{lives, Life, Lives, SITES};
use crate::support::run::seeds;
use crate::support::{self, call, trace_of, StreamOf};
use mallard_trace::format::{op, pack, Record};
use mallard_trace::survey::{survey, AddressMap, Options, Survey, LIVES, SIZES};
use mallard_trace::tables::schema::{FRAMES, STACKS};
use mallard_trace::walk::Limits;
use mallard_trace::Trace;
use std::collections::BTreeMap;

/// Returns the nodes of the sites' call stacks, which have one frame each, in the order of `SITES`.
/// A site that never occurs gets an invalid node.
fn nodes(trace: &Trace) -> Vec<u32> {
    let stacks = trace.table(&STACKS).unwrap();
    let frames = stacks.i64s("frame").unwrap();
    let addresses = trace.table(&FRAMES).unwrap().i64s("offset").unwrap();
    let node_of = |site: &u64| {
        let is_site = |&node: &usize| node > 0 && addresses[frames[node] as usize] == *site as i64;
        // Node 0 is the empty call stack, which has no frame.
        (0..frames.len()).find(is_site).map_or(1 << 30, |node| node as u32)
    };
    SITES.iter().map(node_of).collect()
}

fn survey_of(trace: &Trace, moments: usize) -> Survey {
    let options = Options {
        sites: nodes(trace),
        moments,
        site_moments: 17,
        map_moments: 9,
        cells: 400,
        ..Options::default()
    };
    survey(trace, &options).unwrap()
}

/// Computes the bytes in use after all events up to the time `t`, for one site or for all.
fn live_at(lives: &[Life], t: i64, site: Option<usize>) -> f64 {
    let of_site = lives.iter().filter(|life| site.is_none_or(|site| site == life.site));
    of_site.map(|life| life.size_at(t)).sum::<u64>() as f64
}

/// Returns the times in `0..=end` at which the bytes in use change, and `end`.
fn changes(lives: &[Life], end: i64) -> Vec<i64> {
    let begins = lives.iter().flat_map(|life| life.sizes.iter().map(|size| size.0));
    let ends = lives.iter().filter_map(|life| Some(life.end?.0));
    let mut all: Vec<i64> = begins.chain(ends).chain([0, end]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn the_timeline_shows_the_peak_bytes_in_use_in_each_interval() {
    for seed in seeds(30) {
        let Lives { stream, lives, times, .. } = lives(seed, 700);
        let (_folder, trace) = trace_of(&stream);
        let found = survey_of(&trace, 41).timeline;
        let end = *times.last().unwrap();
        let width = end / 40 + 1;
        let moments = changes(&lives, end);
        for (&t, &live) in found.t_ns.iter().zip(&found.live) {
            assert_eq!(live, live_at(&lives, t, None), "seed {seed}, at {t}");
        }
        for part in 0..40 {
            let (begin, next) = (part * width, (part + 1) * width);
            let within = moments.iter().copied().filter(|t| (begin..next).contains(t));
            let expected =
                within.chain([begin]).map(|t| live_at(&lives, t, None)).fold(0.0, f64::max);
            let in_part = |&(&t, _): &(&i64, &f64)| (begin..next).contains(&t);
            let highest = found.t_ns.iter().zip(&found.live).filter(in_part).map(|(_, &live)| live);
            if begin <= end {
                assert_eq!(highest.fold(0.0, f64::max), expected, "seed {seed}, part {part}");
            }
        }
        let peak = trace.manifest().totals.sites.peak_bytes as f64;
        assert_eq!(found.live.iter().copied().fold(0.0, f64::max), peak, "seed {seed}");
        assert!(found.t_ns.is_sorted() && found.t_ns.len() <= 41, "seed {seed}");
        assert_eq!(found.live.last(), Some(&live_at(&lives, end, None)));
    }
}

#[test]
fn blocks_are_counted_by_their_final_size_and_their_lifetime() {
    const BOUNDS: [i64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
    for seed in seeds(30) {
        let Lives { stream, lives, .. } = lives(seed, 700);
        let (_folder, trace) = trace_of(&stream);
        let found = survey_of(&trace, 800);
        let mut all = vec![0.0; SIZES.len() * LIVES.len()];
        let mut bytes = all.clone();
        let mut of_sites = vec![all.clone(); SITES.len()];
        for life in &lives {
            let size = life.last_size();
            // The bounds are powers of two up to 4 KiB, then 16, 64 and 256 KiB, 1 MiB and 16 MiB.
            // No block is larger.
            let largest = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 16384, 65536, 262144];
            let column = largest.iter().filter(|&&largest| size > largest).count()
                + usize::from(size > 1 << 20);
            let row = life.end.map_or(9, |(end, _)| {
                let micros = (end - life.sizes[0].0) / 1000;
                BOUNDS.iter().filter(|&&bound| micros >= bound).count()
            });
            all[row * SIZES.len() + column] += 1.0;
            bytes[row * SIZES.len() + column] += size as f64;
            of_sites[life.site][row * SIZES.len() + column] += 1.0;
        }
        assert_eq!((&found.heat.all, &found.heat.bytes), (&all, &bytes), "seed {seed}");
        for (site, expected) in found.sites.iter().zip(of_sites) {
            let mut dense = vec![0.0; all.len()];
            site.heat.iter().for_each(|&(cell, count)| dense[cell] = count);
            assert_eq!(dense, expected, "seed {seed}");
        }
    }
}

#[test]
fn frees_are_counted_by_allocating_and_freeing_thread() {
    for seed in seeds(30) {
        let Lives { stream, lives, threads, .. } = lives(seed, 700);
        let (_folder, trace) = trace_of(&stream);
        let found = survey_of(&trace, 800);
        let mut expected: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        let mut of_sites = vec![BTreeMap::new(); SITES.len()];
        for life in &lives {
            if let Some((_, by)) = life.end {
                *expected.entry((life.thread, by)).or_default() += 1.0;
                *of_sites[life.site].entry((life.thread, by)).or_default() += 1.0;
            }
        }
        let pairs = |frees: &[(usize, usize, f64)]| -> BTreeMap<(usize, usize), f64> {
            frees.iter().map(|&(from, to, count)| ((from, to), count)).collect()
        };
        assert_eq!(pairs(&found.frees), expected, "seed {seed}");
        for (site, expected) in found.sites.iter().zip(of_sites) {
            assert_eq!(pairs(&site.frees), expected, "seed {seed}");
        }
        assert_eq!(found.threads.len(), threads);
        for (thread, sums) in found.threads.iter().enumerate() {
            let allocs = lives.iter().filter(|life| life.thread == thread).count();
            assert_eq!((sums.tid, sums.allocs), (Some(thread as i32), allocs as f64));
            assert_eq!(sums.name, "worker");
        }
    }
}

#[test]
fn bytes_in_use_of_selected_sites_are_recorded_at_equal_intervals() {
    for seed in seeds(20) {
        let Lives { stream, lives, times, .. } = lives(seed, 700);
        let (_folder, trace) = trace_of(&stream);
        let found = survey_of(&trace, 800);
        let end = *times.last().unwrap();
        let moments: Vec<i64> = (0..17).map(|part| end * part / 16).collect();
        assert_eq!(found.site_moments, moments);
        for (site, figures) in found.sites.iter().enumerate() {
            let expected = moments.iter().map(|&t| live_at(&lives, t, Some(site)));
            assert_eq!(figures.live, expected.collect::<Vec<_>>(), "seed {seed}, site {site}");
        }
    }
}

/// Returns how full each cell of the map is after all events up to the time `t`. Counts the blocks of
/// `site`, or the blocks of all sites if `site` is `None`.
fn fill(map: &AddressMap, lives: &[Life], t: i64, site: Option<usize>) -> Vec<u8> {
    let of_site = |life: &&Life| site.is_none_or(|site| site == life.site);
    let blocks: Vec<(u64, u64)> = lives
        .iter()
        .filter(of_site)
        .map(|life| (life.addr, life.addr + life.size_at(t)))
        .filter(|(begin, end)| end > begin)
        .collect();
    let cell_bytes = map.bytes_per_cell;
    let cells =
        map.ranges.iter().flat_map(|&(begin, end)| (begin..end).step_by(cell_bytes as usize));
    let used = |cell: u64| {
        let overlap =
            |&(begin, end): &(u64, u64)| end.min(cell + cell_bytes).saturating_sub(begin.max(cell));
        blocks.iter().map(overlap).sum::<u64>()
    };
    cells.map(|cell| (used(cell) * 255).div_ceil(cell_bytes).min(255) as u8).collect()
}

#[test]
fn the_address_map_shows_how_full_memory_was_over_time() {
    for seed in seeds(20) {
        let Lives { stream, lives, .. } = lives(seed, 500);
        let (_folder, trace) = trace_of(&stream);
        let found = survey_of(&trace, 800);
        let map = &found.map;
        assert!(map.moments.is_sorted() && map.moments.len() <= 9, "{:?}", map.moments);
        let cells: u64 = map.ranges.iter().map(|(begin, end)| end - begin).sum();
        assert!(cells / map.bytes_per_cell <= 400);
        for life in lives.iter().filter(|life| life.last_size() > 0) {
            let is_inside = |&(begin, end): &(u64, u64)| (begin..end).contains(&life.addr);
            assert!(map.ranges.iter().any(is_inside), "seed {seed}: {life:?}");
        }
        for (fills, &t) in map.fill.iter().zip(&map.moments) {
            assert_eq!(*fills, fill(map, &lives, t, None), "seed {seed}, at {t}");
        }
        let peak_t = trace.manifest().totals.sites.peak_t;
        assert_eq!(map.moments[map.peak.unwrap()], peak_t);
        for (site, figures) in found.sites.iter().enumerate() {
            let expected = fill(map, &lives, peak_t, Some(site));
            let is_empty = figures.map.is_empty() && expected.iter().all(|&byte| byte == 0);
            assert!(is_empty || figures.map == expected, "seed {seed}, site {site}");
        }
    }
}

#[test]
fn blocks_beyond_the_limit_are_estimated_from_a_sample() {
    let mut stream = StreamOf::new();
    let mut t = 1000;
    let mut malloc = |count: u64, size: u64, base: u64| -> Vec<Vec<u8>> {
        let mut one = |index| {
            t += 10;
            call(op::MALLOC, t, base + index * size, size, 0, &[SITES[0]])
        };
        (0..count).map(&mut one).collect()
    };
    let mut events = malloc(100, 1 << 20, 1 << 40);
    events.extend(malloc(40_000, 64, 1 << 30));
    stream.piece(1, &events);
    let (_folder, trace) = trace_of(&stream.finish());
    let options = Options { limits: Limits { blocks: 2_000 }, ..Options::default() };
    let found = survey(&trace, &options).unwrap();
    assert!(found.one_in >= 32, "{}", found.one_in);
    // Large blocks are never left out, so only the small blocks are estimated.
    let large = 100.0 * f64::from(1 << 20);
    let small = found.timeline.live.last().unwrap() - large;
    assert!((small / (40_000.0 * 64.0) - 1.0).abs() < 0.1, "{small}");
    let never = found.heat.all.iter().sum::<f64>();
    assert!((never / 40_100.0 - 1.0).abs() < 0.1, "{never}");
}

#[test]
fn a_trace_without_events_and_one_with_a_single_event_are_surveyed() {
    let (_folder, trace) = trace_of(&StreamOf::new().finish());
    let found = survey(&trace, &Options::default()).unwrap();
    assert_eq!(found.timeline.live, [0.0]);
    assert!(found.threads.is_empty() && found.frees.is_empty() && found.map.ranges.is_empty());

    let mut stream = StreamOf::new();
    stream.piece(1, &[call(op::MALLOC, 1000, 0x1000, 100, 0, &[SITES[0]])]);
    let (_folder, trace) = trace_of(&stream.finish());
    let found = survey_of(&trace, 800);
    assert_eq!(found.timeline.live.last(), Some(&100.0));
    assert_eq!(found.sites[0].live.last(), Some(&100.0));
    assert_eq!((found.map.ranges.as_slice(), found.map.fill.len()), (&[(0x1000, 0x1100)][..], 2));
    assert_eq!(found.heat.all.iter().sum::<f64>(), 1.0);
}

#[test]
fn blocks_are_freed_when_their_process_exits_unless_it_is_the_only_one() {
    let mut stream = StreamOf::new();
    stream.text(op::PROCESS, 1000, 1, 42, 0, "start /bin/a");
    stream.thread(1, 1);
    stream.piece(1, &[call(op::MALLOC, 1001, 0x9000, 8, 0, &[SITES[0]])]);
    stream.text(op::PROCESS, 1002, 2, 43, 0, "fork 1 /bin/a");
    stream.thread(2, 2);
    stream.piece(2, &[call(op::MALLOC, 1004, 0x9000, 24, 0, &[SITES[0]])]);
    stream.record(op::PROCESS_END, 1005, 2, 0);
    stream.piece(1, &[call(op::MALLOC, 1007, 0xa000, 1, 0, &[SITES[0]])]);
    stream.record(op::PROCESS_END, 1008, 1, 0);
    let (_folder, trace) = trace_of(&stream.finish());
    let found = survey_of(&trace, 800);
    let live: Vec<(i64, f64)> =
        found.timeline.t_ns.iter().copied().zip(found.timeline.live.iter().copied()).collect();
    assert_eq!(&live[..2], [(0, 0.0), (1, 8.0)]);
    assert!(live.contains(&(4, 32.0)) && live.contains(&(7, 9.0)), "{live:?}");
    // None of the three blocks was freed.
    let never = &found.heat.all[9 * SIZES.len()..];
    assert_eq!((never[0], never[1]), (2.0, 1.0));
}

#[test]
fn a_reset_frees_only_the_blocks_of_its_allocator() {
    let mut stream = StreamOf::new();
    let event =
        |op, t, addr, number| Record { t, addr, what: pack(64, 3, op, 0), stack: number, dur: 5 };
    for (op, t, addr, number) in [
        (op::ALLOCATE, 1001, 0x1000, 1),
        (op::ALLOCATE, 1002, 0x1000, 2),
        (op::ALLOCATE, 1003, 0x1040, 2),
        (op::RESET, 1005, 0, 2),
    ] {
        stream.0.record(&event(op, t, addr, number)).unwrap();
    }
    let (_folder, trace) = trace_of(&stream.finish());
    let found = survey(&trace, &Options::default()).unwrap();
    assert_eq!(found.timeline.live.last(), Some(&64.0));
    assert_eq!(found.frees.iter().map(|free| free.2).sum::<f64>(), 2.0);
}

#[test]
fn a_block_whose_address_is_allocated_again_counts_as_freed() {
    let mut stream = StreamOf::new();
    let events = [
        call(op::MALLOC, 1001, 0x1000, 100, 0, &[SITES[0]]),
        call(op::MALLOC, 1002, 0x1000, 30, 0, &[SITES[1]]),
        call(op::FREE, 1003, 0x1000, 0, 0, &[SITES[1]]),
    ];
    stream.piece(1, &events);
    let (_folder, trace) = trace_of(&stream.finish());
    assert_eq!(trace.manifest().counts.missed_frees, 1);
    let found = survey_of(&trace, 800);
    assert_eq!(found.timeline.live.last(), Some(&0.0));
    assert_eq!(found.timeline.live.iter().copied().fold(0.0, f64::max), 100.0);
}

#[test]
fn threads_beyond_the_limit_are_summed_up() {
    let mut stream = StreamOf::new();
    for thread in 0..100u64 {
        let addr = 0x1000 * (thread + 1);
        let mut events = vec![call(op::MALLOC, 1000 + thread, addr, 8, 0, &[SITES[0]])];
        if thread < 10 {
            events.push(call(op::FREE, 2000 + thread, addr, 0, 0, &[SITES[0]]));
        }
        stream.piece(thread, &events);
    }
    let (_folder, trace) = trace_of(&stream.finish());
    let found = survey_of(&trace, 800);
    assert_eq!(found.threads.len(), 64);
    let others = found.threads.last().unwrap();
    assert_eq!((others.tid, others.allocs), (None, 37.0));
    assert_eq!(found.threads.iter().map(|thread| thread.allocs).sum::<f64>(), 100.0);
    // The threads with the most events have separate entries.
    assert_eq!(found.frees.len(), 10);
}

#[test]
fn a_sampled_trace_gives_estimates() {
    let header = mallard_trace::format::Header { sample_bytes: 1000, ..support::header() };
    let mut stream = StreamOf::with(&header);
    stream.piece(1, &[call(op::MALLOC, 1001, 0x1000, 100, 0, &[SITES[0]])]);
    let (_folder, trace) = trace_of(&stream.finish());
    let found = survey_of(&trace, 800);
    // 1 / (1 - e^-0.1) = 10.508
    assert_eq!(found.timeline.live.last().map(|live| live.round()), Some(1051.0));
    assert!((found.heat.all.iter().sum::<f64>() - 10.508).abs() < 0.001);
}
