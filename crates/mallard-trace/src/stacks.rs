//! Stores call stacks as nodes of a prefix tree.
//!
//! A node represents a call stack. The parent of the node represents the call stack without its
//! innermost frame. Node 0 represents the empty call stack, and also unknown call stacks.

use crate::hash::mix;
use hashbrown::HashTable;

/// The empty call stack.
pub const ROOT: u32 = 0;
/// A placeholder for outer frames that the recorder could not find.
pub const FRAME_CUT: u32 = 0;
/// A placeholder for frames that the recorder left out, because the stack was too deep.
pub const FRAME_GAP: u32 = 1;
/// The first frame with an address or a name.
pub const FRAME_FIRST: u32 = 2;

/// A call stack: its parent, its innermost frame, and the child that `child` returned last.
#[derive(Clone, Copy)]
struct Node {
    parent: u32,
    frame: u32,
    last_child: u32,
}

/// A prefix tree of call stacks. Uses 19 to 24 bytes of memory per node.
pub struct Tree {
    nodes: Vec<Node>,
    depths: Vec<u16>,
    children: HashTable<u32>,
    nodes_max: usize,
    refused: u64,
}

impl Tree {
    /// Makes a tree that has only the root, and that may grow to `nodes_max` nodes.
    pub fn new(nodes_max: usize) -> Self {
        Tree {
            nodes: vec![Node { parent: ROOT, frame: FRAME_CUT, last_child: ROOT }],
            depths: vec![0],
            children: HashTable::new(),
            nodes_max,
            refused: 0,
        }
    }

    /// Returns the child of `parent` for `frame`. Adds the child if it does not exist, or returns
    /// `parent` if the tree is full.
    ///
    /// Most calls look up the same child as the previous call. Checking that child costs one cache
    /// miss, for its node, which the next call reads anyway. A lookup in the hash table would cost
    /// three cache misses.
    #[inline]
    pub fn child(&mut self, parent: u32, frame: u32) -> u32 {
        let last = self.nodes[parent as usize].last_child;
        if self.is(last, parent, frame) {
            return last;
        }
        let hash = hash_of(parent, frame);
        let node = match self.children.find(hash, |&node| self.is(node, parent, frame)) {
            Some(&node) => node,
            None => self.grow(parent, frame, hash),
        };
        self.nodes[parent as usize].last_child = node;
        node
    }

    /// Returns whether `node` is the child of `parent` for `frame`. Returns false for the root.
    #[inline]
    fn is(&self, node: u32, parent: u32, frame: u32) -> bool {
        let found = &self.nodes[node as usize];
        node != ROOT && found.parent == parent && found.frame == frame
    }

    #[cold]
    fn grow(&mut self, parent: u32, frame: u32, hash: u64) -> u32 {
        if self.nodes.len() >= self.nodes_max {
            self.refused += 1;
            return parent;
        }
        let node = self.nodes.len() as u32;
        self.nodes.push(Node { parent, frame, last_child: ROOT });
        self.depths.push(self.depths[parent as usize].saturating_add(1));
        let nodes = &self.nodes;
        let rehash = |&node: &u32| {
            let Node { parent, frame, .. } = nodes[node as usize];
            hash_of(parent, frame)
        };
        self.children.insert_unique(hash, node, rehash);
        node
    }

    /// Returns the number of nodes, including the root.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of nodes that were not added because the tree was full.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the parent, the innermost frame and the depth of a node.
    pub fn node(&self, node: u32) -> (u32, u32, u16) {
        let Node { parent, frame, .. } = self.nodes[node as usize];
        (parent, frame, self.depths[node as usize])
    }
}

#[inline]
fn hash_of(parent: u32, frame: u32) -> u64 {
    mix(u64::from(parent) << 32 | u64::from(frame))
}

/// The current call stack of one thread: the nodes of its frames, the outermost first.
#[derive(Debug, Clone, Default)]
pub struct ThreadStack {
    nodes: Vec<u32>,
}

impl ThreadStack {
    /// Removes all frames but the outermost `kept` frames. Returns the node of the remaining call
    /// stack, and whether the call stack had at least `kept` frames.
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
    fn equal_call_stacks_share_one_tree_node() {
        let mut tree = Tree::new(100);
        let a = tree.child(ROOT, 5);
        let b = tree.child(a, 6);
        assert_eq!(tree.child(ROOT, 5), a);
        assert_eq!(tree.child(a, 6), b);
        assert_ne!(tree.child(ROOT, 6), b);
        assert_eq!(tree.child(a, 6), b);
        assert_eq!(tree.node(b), (a, 6, 2));
        assert_eq!(tree.nodes(), 4);
    }

    #[test]
    fn a_full_call_stack_tree_returns_the_parent_and_counts_the_loss() {
        let mut tree = Tree::new(2);
        let a = tree.child(ROOT, 5);
        assert_eq!(tree.child(a, 6), a);
        assert_eq!((tree.nodes(), tree.refused()), (2, 1));
    }

    #[test]
    fn the_recorder_can_keep_the_outer_frames_of_the_previous_call_stack() {
        let mut stack = ThreadStack::default();
        stack.push(1);
        stack.push(2);
        assert_eq!(stack.keep(1), (1, true));
        assert_eq!(stack.keep(2), (1, false));
        assert_eq!(stack.keep(0), (ROOT, true));
    }
}
