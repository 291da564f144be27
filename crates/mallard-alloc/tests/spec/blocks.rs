//! The blocks of a test program of `spec/`, and the checks of their addresses and contents.

use super::ground::Ground;
use super::line::{broken, hold, Held, Line, Numbers};
use std::alloc::Layout;
use std::collections::{BTreeMap, HashMap};
use std::ptr::NonNull;

#[derive(Clone)]
pub struct Block {
    pub begin: NonNull<u8>,
    pub asked: Layout,
    tag: u8,
}

impl Block {
    fn addr(&self) -> usize {
        self.begin.as_ptr().addr()
    }
    fn end(&self) -> usize {
        self.addr() + self.asked.size()
    }
    fn fill(&self) {
        // SAFETY: the block belongs to this program, and has this size.
        unsafe { self.begin.write_bytes(self.tag, self.asked.size()) }
    }
    fn check(&self) -> Held {
        // SAFETY: the block belongs to this program, and is filled.
        let bytes = unsafe { std::slice::from_raw_parts(self.begin.as_ptr(), self.asked.size()) };
        // The bytes are compared as a whole, because Miri and unoptimised builds take long for each
        // byte.
        hold(bytes == vec![self.tag; bytes.len()], "a block keeps its bytes")
    }
}

/// Blocks by name, each filled with a different pattern. Some blocks have no name.
#[derive(Default)]
pub struct Blocks {
    all: Vec<Block>,
    by_name: HashMap<String, usize>,
    /// All blocks by address, except blocks of size 0, which may share an address.
    live: BTreeMap<usize, usize>,
    live_of_no_size: Vec<usize>,
}

/// A snapshot of the blocks, to which `rewind` returns.
pub struct Picture(Vec<Layout>);

impl Blocks {
    /// Adds a block, and checks its address.
    pub fn add(&mut self, name: &str, begin: NonNull<u8>, asked: Layout, ground: &Ground) -> Held {
        let index = self.all.len();
        let block = Block { begin, asked, tag: (7 * index) as u8 };
        hold(block.addr() % asked.align() == 0, "a block is aligned as asked")?;
        if asked.size() == 0 {
            self.live_of_no_size.push(index);
        } else {
            let within = ground.holds(block.addr(), asked.size());
            hold(within, "a block lies in what the source gave")?;
            let before = self.live.range(..block.end()).next_back();
            let apart = before.is_none_or(|(_, i)| self.all[*i].end() <= block.addr());
            hold(apart, "blocks are apart")?;
            self.live.insert(block.addr(), index);
        }
        block.fill();
        if !name.is_empty() {
            self.by_name.insert(name.into(), index);
        }
        self.all.push(block);
        Ok(())
    }

    pub fn named(&self, name: &str) -> Held<&Block> {
        match self.by_name.get(name) {
            Some(i) => Ok(&self.all[*i]),
            None => broken(format!("there is no {name}")),
        }
    }
    fn live_index(&self, name: &str) -> Held<usize> {
        let addr = self.named(name)?.addr();
        let index = self.by_name[name];
        let lives = self.live.get(&addr) == Some(&index) || self.live_of_no_size.contains(&index);
        hold(lives, &format!("{name} is free"))?;
        Ok(index)
    }
    pub fn live(&self, name: &str) -> Held<&Block> {
        Ok(&self.all[self.live_index(name)?])
    }

    /// Removes a block that is about to be freed.
    pub fn take(&mut self, name: &str) -> Held<Block> {
        let index = self.live_index(name)?;
        let block = self.all[index].clone();
        block.check()?;
        if block.asked.size() == 0 {
            self.live_of_no_size.retain(|i| *i != index);
        } else {
            self.live.remove(&block.addr());
        }
        Ok(block)
    }
    /// Changes the size of a block.
    pub fn expanded(&mut self, name: &str, to: Layout) -> Held {
        let index = self.live_index(name)?;
        let block = &mut self.all[index];
        let kept = block.asked.size().min(to.size());
        block.asked = Layout::from_size_align(kept, to.align()).expect("a smaller one");
        block.check()?;
        block.asked = to;
        block.fill();
        Ok(())
    }

    pub fn verify(&self) -> Held {
        self.live.values().try_for_each(|i| self.all[*i].check())
    }
    pub fn forget(&mut self) {
        self.live.clear();
        self.live_of_no_size.clear();
    }

    pub fn picture(&self) -> Picture {
        Picture(self.all.iter().map(|block| block.asked).collect())
    }
    /// Discards the blocks that were added after a snapshot, and restores the sizes of older
    /// blocks.
    pub fn rewind(&mut self, then: &Picture) {
        self.live.retain(|_, i| *i < then.0.len());
        self.live_of_no_size.retain(|i| *i < then.0.len());
        for (block, asked) in self.all.iter_mut().zip(&then.0) {
            if asked.size() < block.asked.size() {
                block.asked = *asked;
            }
        }
    }

    /// Evaluates the expectations `holds`, `aligned`, `is`, `is not` and `behind`. Returns `None`
    /// for other words.
    pub fn expect(&self, name: &str, is: &str, l: &mut Line, named: &Numbers) -> Held<Option<()>> {
        let block = self.named(name)?;
        match is {
            "holds" => {
                self.live(name)?;
                self.verify()?;
            }
            "aligned" => hold(block.addr() % l.number("an alignment", named)? == 0, "")?,
            "behind" => hold(block.addr() == self.named(&l.word("a block")?)?.end(), "")?,
            "is" => {
                let other = l.take("not");
                let same = block.addr() == self.named(&l.word("a block")?)?.addr();
                hold(same != other, "")?;
            }
            _ => return Ok(None),
        }
        Ok(Some(()))
    }
}
