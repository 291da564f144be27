//! Makes random programs with the history of each block, so that any figure of a trace can be
//! computed without reading events.

use super::{call, Random, StreamOf};
use mallard_trace::format::op;
use std::collections::HashMap;

/// The return addresses of the sites.
pub const SITES: [u64; 6] = [0x1010, 0x1020, 0x1030, 0x1040, 0x1050, 0x1060];

/// The history of one block.
#[derive(Clone, Debug)]
pub struct Life {
    /// The index in `SITES` of the function that allocated the block.
    pub site: usize,
    pub thread: usize,
    pub addr: u64,
    /// The sizes of the block, each with the time from which it applies.
    pub sizes: Vec<(i64, u64)>,
    /// When the block was freed, and the thread that freed it.
    pub end: Option<(i64, usize)>,
}

impl Life {
    /// Returns the size of the block after all events up to the time `t`, or 0 if the block is not
    /// in use.
    pub fn size_at(&self, t: i64) -> u64 {
        if self.end.is_some_and(|(end, _)| end <= t) {
            return 0;
        }
        self.sizes.iter().rev().find(|(begin, _)| *begin <= t).map_or(0, |&(_, size)| size)
    }

    /// Returns the last size of the block.
    pub fn last_size(&self) -> u64 {
        self.sizes.last().expect("a size").1
    }
}

/// A random program and the histories of its blocks.
pub struct Lives {
    pub stream: Vec<u8>,
    pub lives: Vec<Life>,
    pub threads: usize,
    /// The times of all events.
    pub times: Vec<i64>,
}

struct Maker {
    random: Random,
    t: u64,
    lives: Vec<Life>,
    live: Vec<usize>,
    used: HashMap<u64, ()>,
    pieces: Vec<Vec<Vec<u8>>>,
    times: Vec<i64>,
}

impl Maker {
    fn now(&self) -> i64 {
        self.t as i64 - 1000
    }

    /// Returns an address at which no block is in use. Small blocks are in two heaps, and large
    /// blocks are far apart.
    fn address(&mut self, size: u64) -> u64 {
        loop {
            let place = self.random.below(3000) as u64;
            let addr = match (size > 8192, self.random.below(2)) {
                (true, _) => 0x7f00_0000_0010 + (place << 24),
                (false, 0) => 0x5555_0000_0000 + place * 8192,
                (false, _) => 0x7fff_0000_0000 + place * 8192,
            };
            if self.used.insert(addr, ()).is_none() {
                return addr;
            }
        }
    }

    fn size(&mut self) -> u64 {
        match self.random.below(12) {
            0 => 0,
            1 => 50_000 + self.random.below(3_000_000) as u64,
            2..=5 => 1 + self.random.below(8000) as u64,
            _ => 1 + self.random.below(200) as u64,
        }
    }

    fn push(&mut self, thread: usize, op: u8, addr: u64, size: u64, site: usize) {
        self.pieces[thread].push(call(op, self.t, addr, size, 0, &[SITES[site]]));
    }

    fn allocate(&mut self, thread: usize, site: usize) {
        let size = self.size();
        let addr = self.address(size);
        self.push(thread, op::MALLOC, addr, size, site);
        self.begin(thread, site, addr, size);
    }

    fn begin(&mut self, thread: usize, site: usize, addr: u64, size: u64) {
        let sizes = vec![(self.now(), size)];
        self.live.push(self.lives.len());
        self.lives.push(Life { site, thread, addr, sizes, end: None });
    }

    fn free(&mut self, thread: usize, site: usize) {
        let Some(index) = self.any() else { return };
        self.push(thread, op::FREE, self.lives[index].addr, 0, site);
        self.end(index, thread);
    }

    fn end(&mut self, index: usize, thread: usize) {
        self.lives[index].end = Some((self.now(), thread));
        self.used.remove(&self.lives[index].addr);
        self.live.retain(|&other| other != index);
    }

    fn any(&mut self) -> Option<usize> {
        (!self.live.is_empty()).then(|| self.live[self.random.below(self.live.len())])
    }

    fn reallocate(&mut self, thread: usize, site: usize) {
        let Some(index) = self.any() else { return };
        let (addr, old) = (self.lives[index].addr, self.lives[index].last_size());
        self.push(thread, op::REALLOC_FROM, addr, old, site);
        self.t += 1;
        match self.random.below(4) {
            // A realloc that fails.
            0 => self.push(thread, op::REALLOC_TO, 0, 77, site),
            // A realloc that frees the block.
            1 => {
                self.push(thread, op::REALLOC_TO, 0, 0, site);
                self.end(index, thread);
            }
            2 => {
                let size = self.size();
                let to = self.address(size);
                self.push(thread, op::REALLOC_TO, to, size, site);
                self.end(index, thread);
                self.begin(thread, site, to, size);
            }
            _ => {
                let size = if old > 8192 { old / 2 } else { old.min(8000) + 9 };
                self.push(thread, op::REALLOC_TO, addr, size, site);
                let now = self.now();
                self.lives[index].sizes.push((now, size));
            }
        }
    }
}

/// Makes a random program. `events` is the number of its steps.
pub fn lives(seed: u64, events: usize) -> Lives {
    let mut random = Random(seed);
    let threads = 1 + random.below(3);
    let mut maker = Maker {
        random,
        t: 1000,
        lives: Vec::new(),
        live: Vec::new(),
        used: HashMap::new(),
        pieces: vec![Vec::new(); threads],
        times: Vec::new(),
    };
    let mut stream = StreamOf::new();
    stream.text(op::PROCESS, 1000, 1, 42, 0, "start /bin/a");
    for thread in 0..threads {
        stream.thread(thread as u32, 1);
    }
    for step in 0..events {
        let scale = [10, 1000, 100_000, 10_000_000][maker.random.below(4)];
        maker.t += 1 + maker.random.below(scale) as u64;
        let (thread, site) = (maker.random.below(threads), maker.random.below(SITES.len()));
        match maker.random.below(10) {
            0..=4 => maker.allocate(thread, site),
            5..=7 => maker.free(thread, site),
            8 => maker.reallocate(thread, site),
            _ if maker.random.below(2) == 0 => maker.push(thread, op::CALLOC, 0, 9, site),
            _ => maker.push(thread, op::FREE, 0, 0, site),
        }
        let now = maker.now();
        maker.times.push(now);
        if step % 50 == 49 {
            for (thread, piece) in maker.pieces.iter_mut().enumerate() {
                stream.piece(thread as u64, &std::mem::take(piece));
            }
            stream.checkpoint(maker.t + 1);
        }
    }
    for (thread, piece) in maker.pieces.iter().enumerate() {
        stream.piece(thread as u64, piece);
    }
    Lives { stream: stream.finish(), lives: maker.lives, threads, times: maker.times }
}
