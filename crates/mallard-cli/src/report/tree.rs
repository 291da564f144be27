//! The call stacks of the sites that a page shows, as one tree.

use super::encode::width;
use super::strings::Strings;
use mallard_trace::names::is_wrapper;
use mallard_trace::trace::{FrameInfo, Stacks};
use serde::Serialize;
use std::collections::HashMap;

/// The approximate size of a node in the page in bytes, without the number of the node's function.
/// The next constant is the size of a function without its names.
const NODE_BYTES: usize = 4;
const FRAME_BYTES: usize = 20;

/// The tree, to which call stacks are added one by one. Each function has a node, even an inlined
/// function. Calls of one function from one line share a node, even if they are at different
/// addresses.
pub struct Tree<'a> {
    stacks: &'a Stacks,
    /// All names.
    pub strings: Strings,
    /// Function, module, file and line of each frame.
    frames: Vec<[i32; 4]>,
    frame_index: HashMap<[i32; 4], u32>,
    /// For each frame of the trace, its functions, the outermost first.
    functions: HashMap<u32, Vec<u32>>,
    /// For each node, its parent and its function. Node 0 is the empty call stack.
    nodes: Vec<(u32, u32)>,
    children: HashMap<(u32, u32), u32>,
    /// For each added call stack of the trace, its node.
    node_of: HashMap<i32, u32>,
    /// The approximate bytes that the tree needs in the page.
    bytes: usize,
}

/// The nodes in the order of the page, which is depth first, with the children of a node in the
/// order of their names. The parent of node i is i - up[i].
#[derive(Debug, Default, Serialize, PartialEq)]
pub struct Nodes {
    pub up: Vec<u32>,
    pub frame: Vec<i32>,
}

/// The functions of the nodes. Name, module and file are indices into the strings, or -1 for an
/// unknown text. `line` is the line number.
#[derive(Debug, Default, Serialize)]
pub struct Frames {
    pub func: Vec<i32>,
    pub module: Vec<i32>,
    pub file: Vec<i32>,
    pub line: Vec<i32>,
    /// 1 for a function that only passes an allocation on. The page does not name a site after such
    /// a function.
    pub passes: Vec<u8>,
}

impl<'a> Tree<'a> {
    /// Makes an empty tree.
    pub fn new(stacks: &'a Stacks) -> Tree<'a> {
        Tree {
            stacks,
            strings: Strings::default(),
            frames: Vec::new(),
            frame_index: HashMap::new(),
            functions: HashMap::new(),
            nodes: vec![(0, 0)],
            children: HashMap::new(),
            node_of: HashMap::from([(0, 0)]),
            bytes: 0,
        }
    }

    /// Returns the approximate bytes that the tree and its names need in the page.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a call stack of the trace. Returns the node of the call stack.
    pub fn add(&mut self, stack: i32) -> u32 {
        let mut frames = Vec::new();
        let mut at = stack;
        let mut node = loop {
            if let Some(&node) = self.node_of.get(&at) {
                break node;
            }
            let Some((outer, frame)) = self.stacks.split(at) else { break 0 };
            frames.push((at, frame));
            at = outer;
        };
        for (stack, frame) in frames.into_iter().rev() {
            for function in self.functions_of(frame) {
                node = self.child(node, function);
            }
            self.node_of.insert(stack, node);
        }
        node
    }

    fn functions_of(&mut self, frame: u32) -> Vec<u32> {
        if let Some(functions) = self.functions.get(&frame) {
            return functions.clone();
        }
        let stacks = self.stacks;
        let all = stacks.functions_at(frame);
        let functions: Vec<u32> = all.iter().rev().map(|info| self.frame(info)).collect();
        self.functions.insert(frame, functions.clone());
        functions
    }

    fn frame(&mut self, info: &FrameInfo) -> u32 {
        let line = info.line.map_or(-1, |line| line as i32);
        let texts = [info.function, info.module, info.file];
        let before = self.strings.len();
        let [func, module, file] = texts.map(|text| self.strings.index(text));
        if self.strings.len() > before {
            self.bytes += texts.map(Strings::bytes_of).iter().sum::<usize>();
        }
        let key = [func, module, file, line];
        if let Some(&index) = self.frame_index.get(&key) {
            return index;
        }
        let index = self.frames.len() as u32;
        self.frames.push(key);
        self.frame_index.insert(key, index);
        self.bytes += FRAME_BYTES;
        index
    }

    fn child(&mut self, parent: u32, frame: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let node = *self.children.entry((parent, frame)).or_insert(next);
        if node == next {
            self.nodes.push((parent, frame));
            self.bytes += NODE_BYTES + width(i64::from(frame));
        }
        node
    }

    /// Returns the nodes, the functions, the strings, and a map from the nodes that [`Tree::add`]
    /// returned to the nodes of the page.
    pub fn finish(self) -> (Nodes, Frames, Strings, Vec<u32>) {
        let (nodes, place_of) = self.in_order();
        let column = |at: usize| self.frames.iter().map(|frame| frame[at]).collect();
        let passes = |frame: &[i32; 4]| u8::from(is_wrapper(self.strings.text(frame[0])));
        let frames = Frames {
            func: column(0),
            module: column(1),
            file: column(2),
            line: column(3),
            passes: self.frames.iter().map(passes).collect(),
        };
        (nodes, frames, self.strings, place_of)
    }

    /// Numbers the nodes again in depth-first order. A node comes first, then its first child with
    /// the whole subtree, then the next child. Also returns the new number of each node.
    fn in_order(&self) -> (Nodes, Vec<u32>) {
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (node, &(parent, _)) in self.nodes.iter().enumerate().skip(1) {
            children[parent as usize].push(node as u32);
        }
        let mut place_of = vec![0; self.nodes.len()];
        let mut nodes = Nodes::default();
        let mut coming = vec![0];
        while let Some(node) = coming.pop() {
            let place = nodes.up.len() as u32;
            let (parent, frame) = self.nodes[node as usize];
            place_of[node as usize] = place;
            nodes.up.push(place - place_of[parent as usize]);
            nodes.frame.push(if node == 0 { -1 } else { frame as i32 });
            let below = &mut children[node as usize];
            below.sort_by_cached_key(|&child| std::cmp::Reverse(self.name(child)));
            coming.append(below);
        }
        (nodes, place_of)
    }

    /// Returns the key by which children are ordered, which is name, line, and number.
    fn name(&self, node: u32) -> (String, i32, u32) {
        let frame = self.frames[self.nodes[node as usize].1 as usize];
        (self.strings.text(frame[0]).to_string(), frame[3], node)
    }
}
