//! Call stacks as nodes of one prefix tree.
//!
//! A node represents a call stack. Its parent represents the stack without the innermost frame.
//! Node 0 is the empty stack, and also represents an unknown stack.

use crate::hash::mix;
use hashbrown::HashTable;

/// The empty call stack.
pub const ROOT: u32 = 0;
/// A frame in place of outer frames that the recorder could not find.
pub const FRAME_CUT: u32 = 0;
/// A frame in place of frames that were too many to be written.
pub const FRAME_GAP: u32 = 1;
/// The first frame with an address or a name.
pub const FRAME_FIRST: u32 = 2;

/// The tree. Memory: 15 to 20 bytes a node.
pub struct Tree {
    parents: Vec<u32>,
    frames: Vec<u32>,
    depths: Vec<u16>,
    children: HashTable<u32>,
    nodes_max: usize,
    refused: u64,
}

impl Tree {
    /// Makes a tree of the root alone, which grows to `nodes_max` nodes.
    pub fn new(nodes_max: usize) -> Self {
        Tree {
            parents: vec![ROOT],
            frames: vec![FRAME_CUT],
            depths: vec![0],
            children: HashTable::new(),
            nodes_max,
            refused: 0,
        }
    }

    /// Returns the node below `parent` for `frame`. If the tree is full, returns `parent`.
    #[inline]
    pub fn child(&mut self, parent: u32, frame: u32) -> u32 {
        let hash = hash_of(parent, frame);
        let (parents, frames) = (&self.parents, &self.frames);
        let is_equal =
            |&node: &u32| parents[node as usize] == parent && frames[node as usize] == frame;
        match self.children.find(hash, is_equal) {
            Some(&node) => node,
            None => self.grow(parent, frame, hash),
        }
    }

    #[cold]
    fn grow(&mut self, parent: u32, frame: u32, hash: u64) -> u32 {
        if self.parents.len() >= self.nodes_max {
            self.refused += 1;
            return parent;
        }
        let node = self.parents.len() as u32;
        self.parents.push(parent);
        self.frames.push(frame);
        self.depths.push(self.depths[parent as usize].saturating_add(1));
        let (parents, frames) = (&self.parents, &self.frames);
        let rehash = |&node: &u32| hash_of(parents[node as usize], frames[node as usize]);
        self.children.insert_unique(hash, node, rehash);
        node
    }

    /// Number of nodes, the root included.
    pub fn nodes(&self) -> usize {
        self.parents.len()
    }

    /// How often a node was asked for after the tree was full.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The parents, frames and depths of all nodes.
    pub fn columns(&self) -> (&[u32], &[u32], &[u16]) {
        (&self.parents, &self.frames, &self.depths)
    }
}

#[inline]
fn hash_of(parent: u32, frame: u32) -> u64 {
    mix(u64::from(parent) << 32 | u64::from(frame))
}

/// The call stack of one thread, the outermost frame first.
#[derive(Default)]
pub struct ThreadStack {
    nodes: Vec<u32>,
}

impl ThreadStack {
    /// Keeps the outermost `kept` frames. Returns the node of the remaining stack, and whether
    /// there were at least `kept` frames.
    #[inline]
    pub fn keep(&mut self, kept: usize) -> (u32, bool) {
        let had = kept <= self.nodes.len();
        self.nodes.truncate(kept);
        (self.nodes.last().copied().unwrap_or(ROOT), had)
    }

    /// Adds an innermost frame.
    #[inline]
    pub fn push(&mut self, node: u32) {
        self.nodes.push(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_have_one_node() {
        let mut tree = Tree::new(100);
        let a = tree.child(ROOT, 5);
        let b = tree.child(a, 6);
        assert_eq!(tree.child(ROOT, 5), a);
        assert_eq!(tree.child(a, 6), b);
        assert_ne!(tree.child(ROOT, 6), b);
        assert_eq!(tree.columns().2, [0, 1, 2, 1]);
    }

    #[test]
    fn a_full_tree_returns_the_parent_and_counts() {
        let mut tree = Tree::new(2);
        let a = tree.child(ROOT, 5);
        assert_eq!(tree.child(a, 6), a);
        assert_eq!((tree.nodes(), tree.refused()), (2, 1));
    }

    #[test]
    fn a_thread_keeps_outer_frames() {
        let mut stack = ThreadStack::default();
        stack.push(1);
        stack.push(2);
        assert_eq!(stack.keep(1), (1, true));
        assert_eq!(stack.keep(2), (1, false));
        assert_eq!(stack.keep(0), (ROOT, true));
    }
}
