//! Finds out when the instances of regions end.
//!
//! A region is a function, or code that the program marks. An instance of a region is open while a
//! thread runs the region. [`Entries`] finds out from call stacks which functions are still
//! running, and [`Marks`] tracks the marks. The search for regions and the replay compiler use both
//! types.

use crate::format::Kind;
use crate::hash::NumberMap;

/// A call stack whose innermost frame is the outermost call of a region's function.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// The depth of this call stack. `length` is the number of regions on it.
    depth: u16,
    length: u16,
    /// The index of the next outer entry, or 0 if there is none.
    outer: u32,
    /// The index of the list of all regions on the call stack.
    list: u32,
}

/// The regions on each call stack.
#[derive(Default)]
pub(crate) struct Entries {
    entries: Vec<Entry>,
    /// The innermost entry and the depth of each node in the call stack tree.
    nodes: Vec<(u32, u16)>,
    /// The lists of regions, each as its first index and end index in `members`.
    lists: Vec<(u32, u32)>,
    members: Vec<u16>,
}

/// The regions on the call stack of an event, and which of them were already running.
pub(crate) struct Running<'a> {
    /// All regions on the call stack, the outermost first.
    list: &'a [u16],
    /// The number of these regions whose call was already running at the previous event of the
    /// thread.
    kept: usize,
    /// The number of these regions that were at the same depth on the call stack of the previous
    /// event. This number is unreliable if the table of call stacks is corrupt.
    pub same: usize,
}

impl<'a> Running<'a> {
    /// Returns the regions on the call stack, the outermost first.
    pub fn list(&self) -> &'a [u16] {
        self.list
    }

    /// Returns the regions whose calls were already running at the previous event. The earlier
    /// instances of all other regions have certainly ended.
    pub fn kept(&self) -> &'a [u16] {
        &self.list[..self.kept]
    }
}

impl Entries {
    /// Finds the call stacks that enter regions. `nodes` has the parent and the innermost frame of
    /// each call stack, and `regions_of` has the regions of each frame.
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

    /// Adds an entry for a region inside the entry `outer`, and returns the index of the new entry.
    /// If one frame enters several regions, their entries have the same depth.
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
        // Entries in a chain of `outer` must have different depths, so an entry of the same depth
        // is skipped.
        let outer = if before.depth == depth { before.outer } else { outer };
        self.entries.push(Entry { depth, length: before.length + 1, outer, list });
        self.entries.len() as u32 - 1
    }

    /// Returns the regions in a list, the outermost first.
    #[inline]
    pub fn members(&self, list: u32) -> &[u16] {
        let (begin, end) = self.lists[list as usize];
        &self.members[begin as usize..end as usize]
    }

    /// Returns the number of lists.
    pub fn lists(&self) -> usize {
        self.lists.len()
    }

    #[inline]
    fn node(&self, node: i32) -> (u32, u16) {
        self.nodes.get(node as usize).copied().unwrap_or_default()
    }

    /// Returns the index of the list of the regions on a call stack.
    #[inline]
    pub fn list(&self, node: i32) -> u32 {
        self.entries[self.node(node).0 as usize].list
    }

    /// Returns the regions on a call stack, the outermost first.
    #[inline]
    pub fn on(&self, node: i32) -> &[u16] {
        self.members(self.list(node))
    }

    /// Returns the depth of a call stack.
    #[inline]
    pub fn depth(&self, node: i32) -> u16 {
        self.node(node).1
    }

    /// Returns the innermost entry whose call is still running at an event of a thread. `node` is
    /// the call stack of the event, and `fresh` is the number of its frames that are new since the
    /// previous event of the thread.
    ///
    /// A frame is a return address, together with the address of its stack slot. The two identify
    /// the running call of the *next inner* function. So a function is in the same call as before
    /// only if the frame of its caller has not changed.
    #[inline]
    fn going_on(&self, node: i32, fresh: u16) -> u32 {
        let (mut entry, depth) = self.node(node);
        let kept = depth.saturating_sub(fresh);
        while entry != 0 && kept < self.entries[entry as usize].depth - 1 {
            entry = self.entries[entry as usize].outer;
        }
        entry
    }

    /// Returns the regions whose calls are still running at an event of a thread, the outermost
    /// first. The earlier instances of all other regions have certainly ended.
    #[inline]
    pub fn kept(&self, node: i32, fresh: u16) -> &[u16] {
        self.members(self.entries[self.going_on(node, fresh) as usize].list)
    }

    /// Returns the regions on the call stack of an event of a thread, and which of them were
    /// already running.
    #[inline]
    pub fn running(&self, node: i32, fresh: u16) -> Running<'_> {
        let depth = self.node(node).1;
        let at = self.entries[self.going_on(node, fresh) as usize];
        let is_next = at.depth > 0 && at.depth - 1 == depth.saturating_sub(fresh);
        let same = if is_next { self.entries[at.outer as usize].length } else { at.length };
        Running { list: self.on(node), kept: at.length.into(), same: same.into() }
    }
}

/// The marked regions that a thread has begun and not ended, the outermost first. A region that is
/// entered recursively occurs repeatedly.
pub(crate) struct Marks<T>(Vec<T>);

impl<T> Default for Marks<T> {
    fn default() -> Self {
        Marks(Vec::new())
    }
}

impl<T: Copy + PartialEq> Marks<T> {
    /// Begins or ends a marked region. Ending a region also ends the regions inside it. Calls
    /// `over` for each region that has no open instance any more.
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

    /// Returns the open regions, the outermost first.
    #[inline]
    pub fn open(&self) -> &[T] {
        &self.0
    }
}
