//! Tests event streams: the golden file, the output of the writer, and bytes that no writer would
//! write.

use crate::support::run::seeds;
use crate::support::{self, golden, header, repository, rewritten, Random};
use mallard_trace::error::ErrorKind;
use mallard_trace::format::{self, op, Record};
use mallard_trace::stream::{Compression, Ending, Reader, Writer};
use std::collections::HashMap;

/// Returns the records, texts and frames of an event stream, and how the stream ends.
fn read(bytes: &[u8]) -> (Vec<(Record, String, Vec<u64>)>, Ending) {
    let mut reader = Reader::new(bytes, "a test").expect("a readable header");
    let mut events = Vec::new();
    while let Some(event) = reader.next_event() {
        events.push((event.record, event.text().into_owned(), event.frames().collect()));
    }
    let ending = reader.ending().expect("an ending").clone();
    (events, ending)
}

#[test]
fn the_golden_event_log_is_read() {
    let (events, ending) = read(&golden());
    let ops: Vec<u8> = events.iter().map(|(record, ..)| record.op()).collect();
    const UNKNOWN: u8 = 10;
    let expected = [
        op::NAME,
        op::THREAD,
        op::ALLOCATE,
        op::ALLOCATE,
        op::ALLOCATE,
        op::DEALLOCATE,
        UNKNOWN,
        op::PROCESS,
        op::MODULE,
        op::THREAD_START,
        op::THREAD,
        op::MALLOC,
        op::CALLOC,
        op::REALLOC_FROM,
        op::REALLOC_TO,
        op::POSIX_MEMALIGN,
        op::FREE,
        op::REGION_BEGIN,
        op::REGION_NAME,
        op::REGION_END,
        op::REGION_NAME,
        op::MEMORY,
        op::CPU,
        op::CHECKPOINT,
        op::THREAD_END,
        op::PROCESS_END,
        op::THREAD,
        op::LOST,
        op::RESET,
    ];
    assert_eq!(ops, expected);
    assert_eq!(ending, Ending::Complete { lost: 2 });
    assert_eq!(events[0].1, "orders of the day, and of the night");
    let (block, ..) = &events[2];
    assert_eq!((block.t, block.addr, block.size()), (1100, 0x7f00_0000_1000, 48));
    assert_eq!((block.align_log2(), block.dur, block.flags()), (4, 50, 0));
    assert_eq!(events[3].0.flags(), format::flag::SIZE_CUT);
    assert_eq!(events[4].0.flags(), format::flag::DUR_CUT);
    let frames =
        [0x5555_5555_0111, 0x5555_5555_0222, 0x5555_5555_0333, 0x5555_5555_0444, 0x5555_5555_0555];
    assert_eq!(events[11].2, frames);
    assert_eq!((events[12].0.kept(), events[12].2.as_slice()), (3, &[0x5555_5555_0666][..]));
    assert_eq!(events[8].1, "555555560000 1000 0123456789abcdef /usr/bin/orders of the day");
}

#[test]
fn the_writer_produces_the_bytes_of_the_golden_event_log() {
    assert_eq!(rewritten(&golden(), Compression::None), golden());
}

#[test]
fn the_writer_produces_the_bytes_of_the_golden_packed_event_log() {
    let golden_packed =
        std::fs::read(support::root().join("spec/trace_format_packed.golden")).unwrap();
    assert_eq!(rewritten(&golden(), Compression::Packed), golden_packed);
}

#[test]
fn a_packed_event_log_has_the_same_events_as_the_unpacked_one() {
    for seed in seeds(20) {
        let mut random = Random(seed);
        let mut plain = Writer::new(Vec::new(), &header(), Compression::None).unwrap();
        let mut packed = Writer::new(Vec::new(), &header(), Compression::Packed).unwrap();
        let mut bytes = 0;
        for thread in 0..random.below(200) as u64 {
            let piece = random_piece(&mut random);
            bytes += piece.len();
            plain.piece(thread, 7 * thread, &piece).unwrap();
            packed.piece(thread, 7 * thread, &piece).unwrap();
            if random.below(20) == 0 {
                packed.flush().unwrap();
            }
        }
        let (plain, packed) = (plain.finish(9).unwrap(), packed.finish(9).unwrap());
        assert_eq!(read(&packed), read(&plain), "{seed}");
        assert!(packed.len() < bytes + 10_000, "{seed}: {} of {bytes} bytes", packed.len());
    }
}

/// Makes random events with texts and with call stacks of up to 65,535 frames. The last event may
/// lack frames, as if the program had overwritten the ring buffer.
fn random_piece(random: &mut Random) -> Vec<u8> {
    let mut piece = Vec::new();
    let small = |random: &mut Random, bound: usize| {
        let bound = 1 + random.below(bound);
        random.below(bound) as u64
    };
    for _ in 0..random.below(300) {
        let fresh = if random.below(1000) == 0 { random.below(65_536) } else { random.below(9) };
        let (op, size, stack) = match random.below(8) {
            0 => (op::FREE, 0, format::pack_stack(small(random, 50) as u16, fresh as u16)),
            1 => (random.below(64) as u8, small(random, 70), random.below(6) as u32),
            2 => (op::NAME, small(random, 70), 1),
            _ => (op::MALLOC, small(random, 5000), format::pack_stack(3, fresh as u16)),
        };
        let (t, addr) = (small(random, 1 << 30), 0x7f00_0000_0000 + 16 * small(random, 1 << 30));
        let record =
            Record { stack, dur: small(random, 3) as u32, ..Record::new(op, t, addr, size) };
        piece.extend(record.to_bytes());
        for _ in 0..record.tail_bytes().div_ceil(8) {
            piece.extend((0x5555_5555_0000 + small(random, 1 << 16)).to_ne_bytes());
        }
        piece.resize(piece.len().next_multiple_of(32), 0);
    }
    if random.below(10) == 0 {
        piece.truncate(random.below(piece.len() + 1) / 32 * 32);
    }
    piece
}

#[test]
fn a_changed_byte_in_a_packed_event_log_is_detected() {
    let whole = rewritten(&golden(), Compression::Packed);
    let (events, _) = read(&whole);
    for at in 72..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        let (good, ending) = read(&changed);
        assert!(matches!(ending, Ending::Damaged(_) | Ending::Cut), "byte {at}: {ending:?}");
        assert_eq!(good[..], events[..good.len()], "byte {at}");
    }
}

#[test]
fn the_constants_equal_those_in_the_c_header() {
    let header = repository("include/mallard/trace/trace_format.h");
    let mut values = HashMap::new();
    for line in header.lines() {
        let Some((name, rest)) = line.trim().split_once(" = ") else { continue };
        let Some(name) = name.strip_prefix("mallard_trace_") else { continue };
        let number: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
        let number = match number.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => number.parse(),
        };
        values.insert(name.to_string(), number.expect("a number"));
    }
    let ours = repository("crates/mallard-trace/src/format.rs");
    let value = |name: &str| values.get(name).copied();
    let mut compared = 0;
    let mut module = "";
    for line in ours.lines() {
        if let Some(name) = line.strip_prefix("pub mod ") {
            module = name.trim_end_matches(" {");
        }
        let Some((name, rest)) =
            line.trim().strip_prefix("pub const ").and_then(|l| l.split_once(": u"))
        else {
            continue;
        };
        let number = rest.split(" = ").nth(1).unwrap().trim_end_matches(';').replace('_', "");
        let number = match number.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => number.parse().ok(),
        };
        let name = name.to_lowercase();
        let prefix =
            if matches!(module, "clock" | "loss") { format!("{module}_") } else { String::new() };
        let Some(number) = number else { continue };
        if module.is_empty() && name.ends_with("_bytes") {
            continue;
        }
        assert_eq!(value(&format!("{prefix}{name}")), Some(number), "{name}");
        compared += 1;
    }
    // This crate has every constant of the C header.
    assert_eq!(compared, values.len(), "{values:?}");
    assert_eq!(values["allocate"], u64::from(op::ALLOCATE));
}

#[test]
fn a_truncated_event_log_is_read_up_to_its_last_complete_event() {
    let golden = golden();
    let (whole, _) = read(&golden);
    let mut before = 0;
    for bytes in 0..golden.len() {
        let cut = &golden[..bytes];
        match Reader::new(cut, "cut") {
            Err(error) => {
                let kind = if bytes == 0 { ErrorKind::Foreign } else { ErrorKind::Truncated };
                assert_eq!((error.kind(), bytes < 64), (kind, true), "{error}");
            }
            Ok(_) => {
                let (events, ending) = read(cut);
                assert_eq!(ending, Ending::Cut);
                assert!(events.len() >= before && events[..] == whole[..events.len()]);
                before = events.len();
            }
        }
    }
    assert_eq!(before, whole.len());
}

#[test]
fn a_packed_event_log_is_readable_up_to_the_last_flush_before_the_writer_was_killed() {
    let mut writer = Writer::new(Vec::new(), &header(), Compression::Packed).unwrap();
    let mut whole = Writer::new(Vec::new(), &header(), Compression::None).unwrap();
    for pass in 0..20 {
        for i in 0..100 {
            let record = Record::new(op::MALLOC, 1000 + pass * 100 + i, 4096 + 64 * i, i);
            writer.record(&record).unwrap();
            whole.record(&record).unwrap();
        }
        writer.flush().unwrap();
    }
    let whole = read(&whole.finish(5000).unwrap()).0;
    let killed = writer.finish(5000).unwrap();
    assert_eq!(read(&killed).0, whole);
    let mut passes = 0;
    for bytes in 0..killed.len() {
        let Ok(mut reader) = Reader::new(&killed[..bytes], "killed") else { continue };
        let mut count = 0;
        while let Some(event) = reader.next_event() {
            assert_eq!(event.record, whole[count].0);
            count += 1;
        }
        assert!(matches!(reader.ending(), Some(Ending::Cut | Ending::Complete { .. })), "{bytes}");
        passes = passes.max(count / 100);
    }
    assert_eq!(passes, 20);
}

#[test]
fn each_kind_of_unreadable_file_has_its_own_error() {
    let changed = |at: usize, to: u8| {
        let mut bytes = golden();
        bytes[at] = to;
        bytes
    };
    let mut swapped = golden();
    swapped[8..12].reverse();
    let packed = rewritten(&golden(), Compression::Packed);
    for (bytes, kind, says) in [
        (changed(0, b'M'), ErrorKind::Foreign, "is not an event log"),
        (b"#!/bin/sh\n".to_vec(), ErrorKind::Foreign, "is not an event log"),
        (Vec::new(), ErrorKind::Foreign, "is not an event log"),
        (swapped, ErrorKind::ByteOrder, "other byte order"),
        (changed(8, 9), ErrorKind::Damaged, "corrupt"),
        (changed(12, 2), ErrorKind::Newer, "version 2"),
        (changed(12, 0), ErrorKind::Damaged, "corrupt"),
        (changed(16, 63), ErrorKind::Damaged, "shorter header"),
        (changed(17, 255), ErrorKind::Damaged, "longer than the file"),
        (changed(20, 31), ErrorKind::Damaged, "size of a record"),
        (golden()[..40].to_vec(), ErrorKind::Truncated, "ends within its header"),
        (packed[..8].to_vec(), ErrorKind::Truncated, "ends within its header"),
        (packed[..71].to_vec(), ErrorKind::Truncated, "ends within its header"),
        ([&packed[..8], b"#!/bin/sh\n"].concat(), ErrorKind::Foreign, "is not an event log"),
    ] {
        let error = Reader::new(&bytes[..], "x.stream").err().expect(says);
        assert_eq!(error.kind(), kind, "{error}");
        let text = error.to_string();
        assert!(text.contains(says) && text.lines().count() == 3, "{text}");
        assert!(text.starts_with("mallard: ") && text.contains("\n  help: "), "{text}");
    }
}

#[test]
fn unknown_bytes_of_a_longer_header_are_skipped() {
    let mut bytes = golden();
    bytes[16] = 64 + 8;
    bytes.splice(64..64, [0xee; 8]);
    assert_eq!(read(&bytes).0, read(&golden()).0);
}

#[test]
fn an_event_log_whose_end_has_an_incorrect_record_count_is_corrupt() {
    let mut bytes = golden();
    let at = bytes.len() - 24;
    bytes[at] ^= 1;
    assert!(matches!(read(&bytes).1, Ending::Damaged(_)));
}

#[test]
fn event_logs_with_randomly_changed_bytes_are_safe_to_read() {
    let golden = golden();
    let packed = rewritten(&golden, Compression::Packed);
    for seed in seeds(10_000) {
        let mut random = Random(seed);
        let mut bytes = if seed % 4 == 0 { packed.clone() } else { golden.clone() };
        for _ in 0..=random.below(8) {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        let Ok(mut reader) = Reader::new(&bytes[..], "changed") else { continue };
        let mut events = 0;
        while reader.next_event().is_some() {
            events += 1;
        }
        assert!(reader.ending().is_some() && events <= 1 << 20);
    }
}

#[test]
fn texts_of_maximum_length_are_read_and_longer_ones_are_truncated_between_characters() {
    let kinds: Vec<u8> = (0..64).filter(|&op| format::has_text(op)).collect();
    assert!(kinds.len() >= 5, "{kinds:?}");
    let longest = "a".repeat(format::TEXT_BYTES_MAX);
    let umlaut = longest[1..].to_string() + "ü";
    for compression in [Compression::None, Compression::Packed] {
        let mut writer = Writer::new(Vec::new(), &header(), compression).unwrap();
        for &op in &kinds {
            for text in [&longest, &(longest.clone() + "b"), &umlaut] {
                writer.text(Record::new(op, 1, 0, 0), text).unwrap();
            }
        }
        let (events, ending) = read(&writer.finish(2).unwrap());
        assert_eq!(ending, Ending::Complete { lost: 0 });
        let texts: Vec<&str> = events.iter().map(|(_, text, _)| text.as_str()).collect();
        assert_eq!(texts.len(), 3 * kinds.len());
        for texts in texts.chunks(3) {
            assert_eq!(texts, [&longest, &longest, &longest[1..]]);
        }
    }
}
