//! Runs the test programs of `spec/` on an arena, a pool or a multipool.

use super::blocks::{Blocks, Picture};
use super::element::{catches_thrown, throw, Element, Plain};
use super::ground::Ground;
use super::line::{broken, hold, Broken, Held, Line, Numbers};
use super::subject::{State, Subject};
use mallard::arena::Mark;
use mallard::sync::Mode;
use mallard::{Arena, BlockAllocator, Multipool, Pool};
use std::alloc::Layout;
use std::collections::HashMap;
use std::ptr::NonNull;

/// The methods of all block allocators, and the methods that only some of them have.
pub trait Allocator: BlockAllocator {
    fn reset(&mut self);
    fn release(&mut self);
    fn trim(&mut self, keep: usize);
    fn live(&self) -> Option<usize>;
    /// Returns the layout of each block, for a pool. `None` for other allocators.
    fn block(&self) -> Option<Layout> {
        None
    }
    fn arena(&self) -> Option<&Arena<Ground>> {
        None
    }
}

impl Allocator for Arena<Ground> {
    fn reset(&mut self) {
        self.reset();
    }
    fn release(&mut self) {
        self.release();
    }
    fn trim(&mut self, keep: usize) {
        self.trim(keep);
    }
    fn live(&self) -> Option<usize> {
        None
    }
    fn arena(&self) -> Option<&Arena<Ground>> {
        Some(self)
    }
}

impl Allocator for Multipool<Ground> {
    fn reset(&mut self) {
        self.reset();
    }
    fn release(&mut self) {
        self.release();
    }
    fn trim(&mut self, keep: usize) {
        self.trim(keep);
    }
    fn live(&self) -> Option<usize> {
        Some(self.statistics().blocks_live)
    }
}

impl<M: Mode> Allocator for Pool<M, Ground> {
    fn reset(&mut self) {
        self.clear();
    }
    fn release(&mut self) {
        self.release();
    }
    fn trim(&mut self, keep: usize) {
        self.trim(keep);
    }
    fn live(&self) -> Option<usize> {
        Some(self.statistics().blocks_live)
    }
    fn block(&self) -> Option<Layout> {
        Some(self.block())
    }
}

pub struct BlockSubject<A> {
    allocator: Option<Box<A>>,
    blocks: Blocks,
    made: HashMap<String, NonNull<Plain>>,
    marks: HashMap<String, (Mark, Picture)>,
}

impl<A: Allocator> BlockSubject<A> {
    pub fn boxed(allocator: A) -> Box<Self> {
        Box::new(Self {
            allocator: Some(Box::new(allocator)),
            blocks: Blocks::default(),
            made: HashMap::new(),
            marks: HashMap::new(),
        })
    }

    fn allocator(&mut self) -> Held<&mut A> {
        self.allocator.as_deref_mut().ok_or(Broken::Why("the allocator has ended".into()))
    }
    fn arena(&mut self) -> Held<&Arena<Ground>> {
        self.allocator()?.arena().ok_or(Broken::Why("that is for an arena".into()))
    }

    /// Returns the layout that a line requests. `None` if no layout in Rust is so large.
    fn asked(&mut self, l: &mut Line, named: &Numbers) -> Held<Option<Layout>> {
        if let Some(layout) = self.allocator()?.block() {
            return Ok(Some(layout));
        }
        let bytes = l.number("bytes", named)?;
        let align = l.number("an alignment", named)?;
        let most = isize::MAX as usize - (align - 1);
        let bytes = if bytes == usize::MAX { most } else { bytes };
        Ok(Layout::from_size_align(bytes, align).ok())
    }

    fn allocate(&mut self, name: &str, layout: Layout, ground: &Ground) -> Held {
        let block = self.allocator()?.try_allocate(layout).ok_or(Broken::Refused)?;
        self.blocks.add(name, block, layout, ground)
    }

    fn expand(&mut self, l: &mut Line, named: &Numbers) -> Held<bool> {
        let name = l.word("a block")?;
        let bytes = l.number("bytes", named)?;
        let block = self.blocks.live(&name)?.clone();
        let to = Layout::from_size_align(bytes, block.asked.align());
        let to = to.map_err(|_| Broken::Refused)?;
        // SAFETY: the block is in use, with this layout.
        let grown = unsafe { self.allocator()?.try_expand(block.begin, block.asked, to) };
        if grown {
            self.blocks.expanded(&name, to)?;
        }
        Ok(grown)
    }

    fn rewind(&mut self, l: &mut Line) -> Held {
        let name = l.word("a mark")?;
        let Some((mark, picture)) = self.marks.get(&name) else {
            return broken(format!("there is no mark {name}"));
        };
        let Some(arena) = self.allocator.as_ref().and_then(|a| a.arena()) else {
            return broken("that is for an arena");
        };
        // SAFETY: the mark is from this arena, and programs rewind to the newest mark first.
        unsafe { arena.rewind(*mark) };
        self.blocks.rewind(picture);
        Ok(())
    }

    fn forget(&mut self) {
        self.blocks.forget();
        self.made.clear();
    }
}

impl<A: Allocator> Subject for BlockSubject<A> {
    fn run(&mut self, verb: &str, name: &str, l: &mut Line, state: &State) -> Held<bool> {
        match verb {
            "allocate" => {
                let layout = self.asked(l, &state.named)?.ok_or(Broken::Refused)?;
                self.allocate(name, layout, &state.ground)?;
            }
            "fill" => {
                let layout = self.asked(l, &state.named)?.ok_or(Broken::Refused)?;
                while let Some(block) = self.allocator()?.try_allocate(layout) {
                    self.blocks.add("", block, layout, &state.ground)?;
                }
            }
            "free" => {
                let block = self.blocks.take(&l.word("a block")?)?;
                // SAFETY: the block is in use, with this layout.
                unsafe { self.allocator()?.deallocate(block.begin, block.asked) };
            }
            "expand" => hold(self.expand(l, &state.named)?, "it is refused")?,
            "reset" => {
                self.allocator()?.reset();
                self.forget();
            }
            "release" => {
                self.allocator()?.release();
                self.forget();
            }
            "end" => {
                self.allocator = None;
                self.forget();
            }
            "trim" => {
                let keep = l.number("bytes to keep", &state.named)?;
                self.allocator()?.trim(keep);
            }
            "move" => {
                let moved = self.allocator.take().map(|a| Box::new(*a));
                self.allocator = moved;
            }
            "mark" => {
                let mark = self.arena()?.mark();
                self.marks.insert(name.into(), (mark, self.blocks.picture()));
            }
            "rewind" => self.rewind(l)?,
            "make" | "own" => {
                let value = Plain::new(l.number("a value", &state.named)?);
                let arena = self.arena()?;
                let made =
                    if verb == "make" { arena.try_alloc(value) } else { arena.try_own(value) };
                let made = NonNull::from(made.map_err(|full| {
                    std::mem::forget(full); // its drop must not count as a drop by the arena
                    Broken::Refused
                })?);
                self.made.insert(name.into(), made);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn refuses(&mut self, verb: &str, l: &mut Line, state: &State) -> Held<bool> {
        match verb {
            "allocate" => {
                if let Some(layout) = self.asked(l, &state.named)? {
                    let block = self.allocator()?.try_allocate(layout);
                    hold(block.is_none(), "try_allocate gives a block")?;
                }
            }
            "expand" => hold(!self.expand(l, &state.named)?, "it grows")?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn throws(&mut self, verb: &str, l: &mut Line, state: &State) -> Held<bool> {
        l.number("a value", &state.named)?;
        let arena = self.arena()?;
        match verb {
            "make" => Ok(catches_thrown(|| _ = arena.alloc_with(throw::<Plain>))),
            "own" => Ok(catches_thrown(|| _ = arena.own(throw::<Plain>()))),
            _ => broken(format!("{verb} makes nothing")),
        }
    }

    fn expect(&mut self, name: &str, is: &str, l: &mut Line, named: &Numbers) -> Held<bool> {
        if let (Some(made), "holds") = (self.made.get(name), is) {
            // SAFETY: the arena keeps the block for as long as the test knows the block.
            let value = unsafe { made.as_ref() }.value();
            hold(value == l.number("a value", named)?, "")?;
            return Ok(true);
        }
        Ok(self.blocks.expect(name, is, l, named)?.is_some())
    }

    fn count(&mut self, name: &str) -> Option<usize> {
        match (name, &self.allocator) {
            ("live", Some(allocator)) => allocator.live(),
            ("live", None) => Some(0),
            ("block_bytes", Some(allocator)) => Some(allocator.block()?.size()),
            ("block_align", Some(allocator)) => Some(allocator.block()?.align()),
            _ => None,
        }
    }

    fn verify(&self) -> Held {
        self.blocks.verify()
    }
}
