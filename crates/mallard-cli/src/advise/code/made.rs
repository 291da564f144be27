//! Finds the purpose of the blocks that a call stack allocates, as far as function names show the
//! purpose.

use mallard_trace::names::{is_standard, is_wrapper, short};
use mallard_trace::trace::FrameInfo;

/// The purpose of the blocks that a call stack allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Made {
    /// The elements of a vector or a similar container.
    Vector,
    /// The nodes of an ordered map, a set or a list.
    Map,
    /// The nodes or the table of a hash map.
    HashMap,
    /// The characters of strings.
    Text,
    /// Single objects of the program.
    Object,
}

use Made::*;

/// Parts of function names in standard libraries, and the purpose that each part stands for. The
/// innermost function with such a part in its name decides.
const NAMES: [(&[&str], Made); 5] = [
    (&["_Rb_tree", "std::map", "_List_base", "std::list", "forward_list", "btree"], Map),
    (&["_Hashtable", "unordered_", "__hash_table", "hashbrown"], HashMap),
    (&["std::vector", "_Vector_base", "std::deque", "_Deque_base"], Vector),
    (&["basic_string", "stringstream", "alloc::string", "alloc::fmt", "alloc::str"], Text),
    (&["std::make_unique", "std::make_shared", "_Sp_counted", "alloc::boxed", "alloc::rc"], Object),
];
/// Name parts of Rust's vectors. These parts are tried last, because strings use vectors, too.
const VECTORS: [&str; 2] = ["alloc::vec", "alloc::raw_vec"];

impl Made {
    /// Returns the purpose of the blocks that a call stack allocates. `frames` has the innermost
    /// function first. Returns `None` if the call stack does not show the purpose.
    pub fn of(frames: &[FrameInfo]) -> Option<Made> {
        let is_of_library = |name: &str| is_wrapper(name) || is_standard(name);
        let inner: Vec<String> = frames
            .iter()
            .take_while(|of| is_of_library(of.function))
            .map(|of| short(of.function))
            .collect();
        let has = |name: &String, parts: &[&str]| parts.iter().any(|part| name.contains(part));
        let named = |name: &String| NAMES.iter().find(|(parts, _)| has(name, parts)).map(|n| n.1);
        let container = inner.iter().find_map(named);
        let vector = inner.iter().any(|name| has(name, &VECTORS)).then_some(Vector);
        container.or(vector).or_else(|| {
            // Without debug information, the functions of a container may be missing from the call
            // stack, so the block need not be a single object.
            let own = frames.get(inner.len())?;
            let is_new = inner.first().is_some_and(|name| name.starts_with("operator new"));
            (is_new && !own.file.is_empty()).then_some(Object)
        })
    }

    /// Returns the word for this purpose in the file name of an example.
    pub fn word(self) -> &'static str {
        match self {
            Vector => "vector",
            Map => "map",
            HashMap => "hash_map",
            Text => "text",
            Object => "objects",
        }
    }

    /// Returns whether the blocks belong to a container, which can use an allocator.
    pub fn is_container(self) -> bool {
        self != Object
    }

    /// Returns whether each block is a node of a container.
    pub fn has_nodes(self) -> bool {
        matches!(self, Map | HashMap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(names: &[&str]) -> Option<Made> {
        let frame = |name| FrameInfo {
            function: name,
            file: "a.cpp",
            line: None,
            module: "a",
            is_inlined: false,
        };
        let frames: Vec<FrameInfo> = names.iter().map(|name| frame(*name)).collect();
        Made::of(&frames)
    }

    #[test]
    fn standard_library_functions_reveal_what_a_block_is_used_for() {
        let node = "std::__detail::_Hash_node<int, false>* \
                    std::__detail::_Hashtable_alloc<A>::_M_allocate_node<int>(int&&)";
        let of_node =
            "std::__new_allocator<std::_Rb_tree_node<std::string> >::allocate(unsigned long)";
        let new = "operator new(unsigned long)";
        let unique = "std::__detail::_MakeUniq<Node>::__single_object std::make_unique<Node>()";
        assert_eq!(made(&[new, node, "bfs(int)", "main"]), Some(HashMap));
        let tree = "std::_Rb_tree<int, int>::_M_get_node()";
        assert_eq!(made(&[new, of_node, tree, "load()"]), Some(Map));
        assert_eq!(made(&[new, "std::vector<int>::push_back(int&&)", "f()"]), Some(Vector));
        let text = "std::__cxx11::basic_string<char>::_M_create(unsigned long&, unsigned long)";
        assert_eq!(made(&[new, text, "std::vector<int>::push_back(int&&)", "f()"]), Some(Text));
        assert_eq!(made(&[new, unique, "parse()"]), Some(Object));
        assert_eq!(made(&[new, "mul(int)", "main"]), Some(Object));
        assert_eq!(made(&["mul(int)", "std::vector<int>::push_back(int&&)"]), None);
        assert_eq!(made(&[]), None);
    }

    #[test]
    fn a_rust_vector_may_belong_to_a_string() {
        let vec = "alloc::raw_vec::RawVecInner<A>::try_allocate_in";
        assert_eq!(made(&["__rust_alloc", vec, "app::f"]), Some(Vector));
        assert_eq!(made(&["__rust_alloc", vec, "alloc::fmt::format", "app::f"]), Some(Text));
        let table = "hashbrown::raw::RawTable<T,A>::reserve_rehash";
        assert_eq!(made(&["__rust_alloc", table, "app::f"]), Some(HashMap));
    }
}
