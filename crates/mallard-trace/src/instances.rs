//! Says when the instances of regions end.
//!
//! A region is a function, or code that the program marks. While it runs on a thread, the thread has an
//! open instance of it. [`Entries`] tells from call stacks which functions go on, and [`Marks`] which
//! marks do. The search for regions and the compiler of replays both follow the instances by these two.

use crate::format::Kind;
use crate::hash::NumberMap;

/// A call stack whose innermost frame is the outermost call of a region's function.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// The depth of the call stack, and how many regions are on it.
    depth: u16,
    length: u16,
    /// The next outer entry; 0 if there is none.
    outer: u32,
    /// The list of the regions on the call stack.
    list: u32,
}

/// The regions on each call stack.
#[derive(Default)]
pub(crate) struct Entries {
    entries: Vec<Entry>,
    /// The innermost entry and the depth of each node of the tree of call stacks.
    nodes: Vec<(u32, u16)>,
    /// The lists of regions: where each begins and ends in `members`.
    lists: Vec<(u32, u32)>,
    members: Vec<u16>,
}

/// The regions on the call stack of an event.
pub(crate) struct Running<'a> {
    /// All these regions, the outermost first.
    list: &'a [u16],
    /// How many of them are still in the call in which they were at the previous event of the thread.
    kept: usize,
    /// How many of them were on the call stack of the previous event at the same depth, unless the table
    /// of call stacks is damaged.
    pub same: usize,
}

impl<'a> Running<'a> {
    /// The regions on the call stack, the outermost first.
    pub fn list(&self) -> &'a [u16] {
        self.list
    }

    /// The regions whose calls go on. The instances of all others have certainly ended.
    pub fn kept(&self) -> &'a [u16] {
        &self.list[..self.kept]
    }
}

impl Entries {
    /// Finds the call stacks that enter regions. `nodes` has the parent and the innermost frame of each
    /// call stack, and `regions_of` has the regions of each frame.
    pub fn new(nodes: &[(u32, u32)], regions_of: &NumberMap<u32, Vec<u16>>) -> Entries {
        let mut all = Entries {
            entries: vec![Entry::default()],
            nodes: vec![(0, 0)],
            lists: vec![(0, 0)],
            members: Vec::new(),
        };
        let mut known: NumberMap<u64, u32> = NumberMap::default();
        all.nodes.reserve(nodes.len());
        for &(parent, frame) in nodes.iter().skip(1) {
            let (mut entry, depth) = all.nodes[parent as usize];
            let depth = depth.saturating_add(1);
            for &region in regions_of.get(&frame).into_iter().flatten() {
                if !all.members(all.entries[entry as usize].list).contains(&region) {
                    entry = all.enter(entry, depth, region, &mut known);
                }
            }
            all.nodes.push((entry, depth));
        }
        all
    }

    /// Adds the entry of a region inside the entry `outer`, and returns its index. If a frame has
    /// several regions, these entries have the same depth.
    fn enter(
        &mut self,
        outer: u32,
        depth: u16,
        region: u16,
        known: &mut NumberMap<u64, u32>,
    ) -> u32 {
        let before = self.entries[outer as usize];
        let next = self.lists.len() as u32;
        let key = u64::from(before.list) << 16 | u64::from(region);
        let list = *known.entry(key).or_insert(next);
        if list == next {
            let (begin, end) = self.lists[before.list as usize];
            let new = self.members.len() as u32;
            self.members.extend_from_within(begin as usize..end as usize);
            self.members.push(region);
            self.lists.push((new, self.members.len() as u32));
        }
        // Skip an entry of the same depth: all entries in a chain of `outer` differ in depth.
        let outer = if before.depth == depth { before.outer } else { outer };
        self.entries.push(Entry { depth, length: before.length + 1, outer, list });
        self.entries.len() as u32 - 1
    }

    /// The regions of a list, the outermost first.
    #[inline]
    pub fn members(&self, list: u32) -> &[u16] {
        let (begin, end) = self.lists[list as usize];
        &self.members[begin as usize..end as usize]
    }

    /// Number of lists.
    pub fn lists(&self) -> usize {
        self.lists.len()
    }

    #[inline]
    fn node(&self, node: i32) -> (u32, u16) {
        self.nodes.get(node as usize).copied().unwrap_or_default()
    }

    /// The list of the regions on a call stack.
    #[inline]
    pub fn list(&self, node: i32) -> u32 {
        self.entries[self.node(node).0 as usize].list
    }

    /// The regions on a call stack, the outermost first.
    #[inline]
    pub fn on(&self, node: i32) -> &[u16] {
        self.members(self.list(node))
    }

    /// The depth of a call stack.
    #[inline]
    pub fn depth(&self, node: i32) -> u16 {
        self.node(node).1
    }

    /// The innermost entry whose call goes on at an event of a thread. `node` is the call stack of the
    /// event, and `fresh` is how many of its frames are new since the previous event of the thread.
    ///
    /// A frame is a return address and its place on the stack. Both together identify the running call
    /// of the *next inner* function. So a function is in the same call as before only if the frame
    /// outside of the function has not changed.
    #[inline]
    fn going_on(&self, node: i32, fresh: u16) -> u32 {
        let (mut entry, depth) = self.node(node);
        let kept = depth.saturating_sub(fresh);
        while entry != 0 && kept < self.entries[entry as usize].depth - 1 {
            entry = self.entries[entry as usize].outer;
        }
        entry
    }

    /// The regions whose calls go on at an event of a thread, the outermost first. The instances of all
    /// others have certainly ended.
    #[inline]
    pub fn kept(&self, node: i32, fresh: u16) -> &[u16] {
        self.members(self.entries[self.going_on(node, fresh) as usize].list)
    }

    /// The regions on the call stack of an event of a thread, and those that go on.
    #[inline]
    pub fn running(&self, node: i32, fresh: u16) -> Running<'_> {
        let depth = self.node(node).1;
        let at = self.entries[self.going_on(node, fresh) as usize];
        let is_next = at.depth > 0 && at.depth - 1 == depth.saturating_sub(fresh);
        let same = if is_next { self.entries[at.outer as usize].length } else { at.length };
        Running { list: self.on(node), kept: at.length.into(), same: same.into() }
    }
}

/// The marks that a thread has begun and not ended, the outermost first. A recursive region occurs
/// repeatedly.
pub(crate) struct Marks<T>(Vec<T>);

impl<T> Default for Marks<T> {
    fn default() -> Self {
        Marks(Vec::new())
    }
}

impl<T: Copy + PartialEq> Marks<T> {
    /// Begins or ends a mark. The end of a mark also ends the marks inside of it. Passes the marks that
    /// are over to `over`.
    pub fn step(&mut self, kind: Kind, mark: T, mut over: impl FnMut(T)) {
        if kind == Kind::RegionBegin {
            return self.0.push(mark);
        }
        let Some(at) = self.0.iter().rposition(|&open| open == mark) else { return };
        for ended in self.0.split_off(at) {
            if !self.0.contains(&ended) {
                over(ended);
            }
        }
    }

    /// The open marks, the outermost first.
    #[inline]
    pub fn open(&self) -> &[T] {
        &self.0
    }
}
