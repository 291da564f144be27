//! How fast does a stream become tables, and how much memory does that take?
//!
//! `cargo run --release -p mallard-trace --example speed -- [MILLIONS|STREAM] [FOLDER]` makes a stream
//! of MILLIONS million events (default 5) by four threads, or takes a stream that `mallard record
//! --keep-stream` left. The example imports the stream and prints the time, the rate, the largest
//! resident size, and the bytes for each event. The trace is kept if FOLDER is given.

use mallard_trace::format::{clock, op, pack, pack_stack, Header, Record};
use mallard_trace::import::{import, Options};
use mallard_trace::stream::{Compression, Writer};
use std::fs::File;
use std::path::PathBuf;
use std::time::Instant;

const THREADS: usize = 4;
/// Events of a thread between two checkpoints.
const PASS: usize = 20_000;

/// A thread of a simulated program. Its call stacks are 20 deep, and each event changes only the
/// innermost frames, as in a compiler.
struct Thread {
    stack: Vec<u64>,
    live: Vec<(u64, u64)>,
    next: u64,
    random: u64,
}

impl Thread {
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % bound
    }

    /// Appends an event and the frames that are new.
    fn event(&mut self, t: u64, to: &mut Vec<u8>) {
        let fresh = self.below(6).min(self.below(6)).min(self.stack.len() as u64) as usize;
        let kept = self.stack.len() - fresh;
        for depth in kept..self.stack.len() {
            // Most events repeat a call stack: 5 million events have some 100,000 different call stacks.
            let callee = self.below(8).saturating_sub(5) * self.below(4);
            self.stack[depth] = 0x40_0000 + 0x1000 * depth as u64 + 16 * callee;
        }
        let is_free = self.live.len() > 100_000 || !self.live.is_empty() && self.below(100) < 48;
        let (op, addr, size, dur) = if is_free {
            let from = self.live.len() - 1 - (self.below(400) as usize).min(self.live.len() - 1);
            let (addr, _) = self.live.swap_remove(from);
            (op::FREE, addr, 0, 0)
        } else {
            let size = 16 * (1 + self.below(10)) + self.below(2) * self.below(500);
            let addr = self.next;
            self.next += size.next_multiple_of(16) + 16;
            self.live.push((addr, size));
            (op::MALLOC, addr, size, 40 + self.below(60) as u32)
        };
        let stack = pack_stack(kept as u16, fresh as u16);
        to.extend(Record { t, addr, what: pack(size, 0, op, 0), stack, dur }.to_bytes());
        to.extend(self.stack[kept..].iter().flat_map(|frame| frame.to_ne_bytes()));
        to.resize(to.len().next_multiple_of(32), 0);
    }
}

fn make_stream(path: &PathBuf, events: usize) -> std::io::Result<()> {
    let header = Header {
        clock_hz: 2_500_000_000,
        start: 0,
        start_unix: 1_700_000_000_000_000_000,
        clock: clock::TSC,
        pid: 1,
        sample_bytes: 0,
    };
    let mut writer = Writer::new(File::create(path)?, &header, Compression::Packed)?;
    let mut threads: Vec<Thread> = (0..THREADS as u64)
        .map(|i| Thread {
            stack: vec![0x40_0000; 20],
            live: Vec::new(),
            next: (i + 1) << 40,
            random: i,
        })
        .collect();
    let (mut t, mut made) = (0, 0);
    let mut piece = Vec::new();
    while made < events {
        let begin = t;
        for (number, thread) in threads.iter_mut().enumerate() {
            t = begin;
            piece.clear();
            for _ in 0..PASS {
                t += 500 + thread.below(1000);
                thread.event(t, &mut piece);
            }
            writer.piece(number as u64, t, &piece)?;
            made += PASS;
        }
        t = begin + PASS as u64 * 1500;
        writer.checkpoint(t, (t as f64 / 2.5) as u64)?;
        writer.flush()?;
    }
    writer.finish(t)?;
    Ok(())
}

/// Returns the largest resident size of this process so far, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or_default() / 1024
}

/// Returns the CPU time of this process so far, in seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks =
        stat.split_whitespace().skip(13).take(2).filter_map(|text| text.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let which = arguments.next().unwrap_or("5".to_string());
    let folder = tempfile::tempdir()?;
    let to = arguments.next().map_or(folder.path().join("a.mallard"), PathBuf::from);
    let stream = match which.parse::<usize>() {
        Ok(millions) => {
            let stream = folder.path().join("synthetic.stream");
            make_stream(&stream, millions * 1_000_000)?;
            stream
        }
        Err(_) => PathBuf::from(which),
    };
    let (begin, cpu) = (Instant::now(), cpu_seconds());
    let options = Options { without_symbols: true, ..Options::default() };
    let trace = import(&stream, &to, &options, &mut |_| ())?;
    let seconds = begin.elapsed().as_secs_f64();
    let manifest = trace.manifest();
    let events = manifest.counts.events;
    println!("{events} events, {:.2} s: {:.2} M/s", seconds, events as f64 / seconds / 1e6);
    let cpu = cpu_seconds() - cpu;
    println!(
        "CPU time {cpu:.2} s: {:.2} M/s on two cores at best",
        2.0 * events as f64 / cpu / 1e6
    );
    println!(
        "peak {} MiB, of which the {} blocks in use are a part",
        peak_mib(),
        manifest.totals.sites.live_allocs
    );
    println!("{} stacks, {} sites", manifest.totals.stacks, manifest.totals.site_count);
    let per_event = |bytes: u64| bytes as f64 / events as f64;
    println!("stream: {:.2} bytes an event", per_event(std::fs::metadata(&stream)?.len()));
    for table in &manifest.tables {
        println!(
            "{:>10}: {:>9} rows, {:.2} bytes an event",
            table.name,
            table.rows,
            per_event(table.bytes)
        );
    }
    let begin = Instant::now();
    let opened = mallard_trace::Trace::open(&to)?;
    println!("manifest: {:.3} s", begin.elapsed().as_secs_f64());
    let sites = opened.sites()?.len();
    println!("{sites} sites: {:.3} s", begin.elapsed().as_secs_f64());
    opened.stacks()?;
    println!("with call stacks: {:.3} s", begin.elapsed().as_secs_f64());
    Ok(())
}
