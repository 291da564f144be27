//! Makes random programs with a few threads, and lists the blocks that they allocate.

use super::{call, Random, StreamOf};
use mallard_trace::format::op;
use std::collections::HashMap;

/// A block of the model.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    pub t0: i64,
    pub t1: i64,
    pub first_size: i64,
    pub size: i64,
    pub max_size: i64,
    pub addr: i64,
    pub tid0: i64,
    pub tid1: i64,
    pub reallocs: i64,
    pub stack: Vec<u64>,
}

/// Makes the event stream of a random program with a few threads, and the list of its blocks.
pub fn program(seed: u64) -> (Vec<u8>, Vec<Block>) {
    let mut random = Random(seed);
    let threads = 1 + random.below(4);
    let mut stream = StreamOf::new();
    stream.text(op::PROCESS, 1000, 1, 42, 0, "start /bin/a");
    for thread in 0..threads {
        stream.thread(thread as u32, 1);
    }
    let mut pieces: Vec<Vec<Vec<u8>>> = vec![Vec::new(); threads];
    let mut stacks: Vec<Vec<u64>> = vec![Vec::new(); threads];
    let mut live: HashMap<u64, usize> = HashMap::new();
    let mut blocks: Vec<Block> = Vec::new();
    let mut t = 1000;
    for step in 0..random.below(2000) {
        t += 1 + random.below(3) as u64;
        let thread = random.below(threads);
        // Change the call stack of the thread.
        let stack = &mut stacks[thread];
        let kept = random.below(stack.len() + 1);
        stack.truncate(kept);
        let mut fresh: Vec<u64> =
            (0..random.below(4)).map(|_| 0x1000 + random.below(6) as u64).collect();
        if kept == 0 && fresh.is_empty() {
            fresh.push(0x1000);
        }
        stack.extend(&fresh);
        let kept = kept as u16;
        let ns = t as i64 - 1000;
        let size = random.below(5000) as u64;
        let free_address = |random: &mut Random, live: &HashMap<u64, usize>| loop {
            let addr = 0x10000 + 16 * random.below(3000) as u64;
            if !live.contains_key(&addr) {
                return addr;
            }
        };
        let mut known: Vec<u64> = live.keys().copied().collect();
        known.sort_unstable();
        let piece = &mut pieces[thread];
        let block = |addr: u64, reallocs| Block {
            t0: ns,
            t1: -1,
            first_size: size as i64,
            size: size as i64,
            max_size: size as i64,
            addr: addr as i64,
            tid0: thread as i64,
            tid1: -1,
            reallocs,
            stack: stack.clone(),
        };
        match random.below(10) {
            0..=4 => {
                let addr = free_address(&mut random, &live);
                piece.push(call(op::MALLOC, t, addr, size, kept, &fresh));
                live.insert(addr, blocks.len());
                blocks.push(block(addr, 0));
            }
            5..=7 if !known.is_empty() => {
                let addr = known[random.below(known.len())];
                piece.push(call(op::FREE, t, addr, 0, kept, &fresh));
                let block = &mut blocks[live.remove(&addr).unwrap()];
                (block.t1, block.tid1) = (ns, thread as i64);
            }
            8 if !known.is_empty() => {
                let addr = known[random.below(known.len())];
                let stack_len = stack.len() as u16;
                piece.push(call(op::REALLOC_FROM, t, addr, size, kept, &fresh));
                t += 1;
                let index = live[&addr];
                let to = match random.below(3) {
                    0 => 0,
                    1 => addr,
                    _ => free_address(&mut random, &live),
                };
                piece.push(call(op::REALLOC_TO, t, to, size, stack_len, &[]));
                if to == addr {
                    let block = &mut blocks[index];
                    block.size = size as i64;
                    block.max_size = block.max_size.max(size as i64);
                    block.reallocs += 1;
                } else if to != 0 {
                    live.remove(&addr);
                    let old = &mut blocks[index];
                    (old.t1, old.tid1) = (ns + 1, thread as i64);
                    let reallocs = old.reallocs + 1;
                    live.insert(to, blocks.len());
                    blocks.push(Block { t0: ns + 1, ..block(to, reallocs) });
                } else if size == 0 {
                    live.remove(&addr);
                    let old = &mut blocks[index];
                    (old.t1, old.tid1) = (ns + 1, thread as i64);
                }
            }
            // An allocation that fails changes no block.
            _ => piece.push(call(op::CALLOC, t, 0, size, kept, &fresh)),
        }
        if step % 50 == 49 {
            for (thread, piece) in pieces.iter_mut().enumerate().rev() {
                stream.piece(thread as u64, &std::mem::take(piece));
            }
            stream.checkpoint(t + 1);
        }
    }
    for (thread, piece) in pieces.iter().enumerate() {
        stream.piece(thread as u64, piece);
    }
    (stream.finish(), blocks)
}
