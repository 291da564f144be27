//! The code of cards in C++.

use super::Made;

/// The text with the standard's memory resources.
pub fn pmr(rule: &str, made: Option<Made>) -> Option<String> {
    let text = match (rule, made) {
        ("wink-out-arena" | "arena", Some(Made::Object)) => PMR_OBJECTS_IN_ARENA,
        ("wink-out-arena", _) => PMR_WINK_OUT_ARENA,
        ("arena", _) => PMR_ARENA,
        ("wink-out-multipool-over-arena", _) => PMR_WINK_OUT_MULTIPOOL_OVER_ARENA,
        ("multipool-over-arena", _) => PMR_MULTIPOOL_OVER_ARENA,
        ("multipool", Some(Made::Object)) | ("object-pool", _) => PMR_OBJECT_POOL,
        ("multipool", _) => PMR_MULTIPOOL,
        _ => return None,
    };
    let container = container(rule, made);
    Some(container.fill(text).replace("@type@", container.pmr))
}

/// The text with Mallard.
pub fn mallard(rule: &str, made: Option<Made>) -> Option<String> {
    let text = match (rule, made) {
        ("wink-out-arena", Some(Made::Object)) => WINK_OUT_OBJECTS_IN_ARENA,
        ("arena", Some(Made::Object)) => OBJECTS_IN_ARENA,
        ("multipool", Some(Made::Object)) => OBJECTS_IN_MULTIPOOL,
        ("wink-out-arena", _) => WINK_OUT_ARENA,
        ("arena", _) => ARENA,
        ("wink-out-multipool-over-arena", _) => WINK_OUT_MULTIPOOL_OVER_ARENA,
        ("multipool-over-arena", _) => MULTIPOOL_OVER_ARENA,
        ("multipool", _) => MULTIPOOL,
        ("object-pool", _) => OBJECT_POOL,
        _ => return None,
    };
    let container = container(rule, made);
    Some(container.fill(text).replace("@type@", container.mallard))
}

/// A container of an example.
struct Container {
    header: &'static str,
    pmr: &'static str,
    mallard: &'static str,
    /// Whether each entry has a key.
    has_keys: bool,
}

/// The container that resembles what the program fills. If the program's is not known, a vector in an arena,
/// whose blocks are not freed alone, and a map in a multipool.
fn container(rule: &str, made: Option<Made>) -> &'static Container {
    match made {
        Some(Made::Map) => &MAP,
        Some(Made::HashMap) => &HASH_MAP,
        None if rule.contains("multipool") => &MAP,
        _ => &VECTOR,
    }
}

impl Container {
    /// The text with all but the type of the container.
    fn fill(&self, text: &str) -> String {
        let keyed = |with: &'static str, without| if self.has_keys { with } else { without };
        sorted(&text.replace("@header@", self.header))
            .replace("@add@", keyed("try_emplace(1, ", "emplace_back("))
            .replace("@first@", keyed("at(1)", "front()"))
            .replace("@entry@", keyed("int key, ", ""))
            .replace("@add entry@", keyed("try_emplace(key, ", "emplace_back("))
    }
}

/// A text whose headers are in order.
fn sorted(text: &str) -> String {
    let is_header = |line: &&str| line.starts_with("#include");
    let mut headers: Vec<&str> = text.lines().filter(is_header).collect();
    headers.sort_unstable();
    let mut headers = headers.into_iter();
    let line = |line| if is_header(&line) { headers.next().unwrap_or(line) } else { line };
    text.lines().map(line).map(|line| format!("{line}\n")).collect()
}

const VECTOR: Container = Container {
    header: "vector",
    pmr: "std::pmr::vector<std::pmr::string>",
    mallard: "std::vector<text, from_memory<text>>",
    has_keys: false,
};
const MAP: Container = Container {
    header: "map",
    pmr: "std::pmr::map<int, std::pmr::string>",
    mallard: "std::map<int, text, std::less<>, from_memory<std::pair<const int, text>>>",
    has_keys: true,
};
const HASH_MAP: Container = Container {
    header: "unordered_map",
    pmr: "std::pmr::unordered_map<int, std::pmr::string>",
    mallard: "std::unordered_map<int, text, std::hash<int>, std::equal_to<>,\n                                      \
              from_memory<std::pair<const int, text>>>",
    has_keys: true,
};

/// Joins a text from its headers and its parts.
macro_rules! text {
    ([$($header:literal)*] $($part:expr)*) => {
        concat!("\n// In @where@\n", $("#include <", $header, ">\n",)* "\n", $($part,)*)
    };
}

/// Containers in an arena, in the standard's forms.
macro_rules! pmr_arena {
    ($($part:expr)*) => {
        text!(["@header@" "memory_resource" "string"]
            "using parts_type = @type@;\n\nstd::size_t @name@()\n{\n"
            "    std::pmr::monotonic_buffer_resource memory; // one for each call\n"
            $($part)*
        )
    };
}

/// A map in a multipool, in the standard's forms.
macro_rules! pmr_multipool {
    ($result:literal $($part:expr)*) => {
        text!(["@header@" "memory_resource" "string"]
            "using state_type = @type@;\n\n"
            $result " @name@()\n{\n"
            "    std::pmr::monotonic_buffer_resource arena; // one for each call\n"
            "    std::pmr::unsynchronized_pool_resource memory(&arena);\n"
            $($part)*
        )
    };
}

/// The comment that says how to try an example under the guard.
macro_rules! for_the_trial {
    ($guarded:literal) => {
        concat!(
            "// For the trial: mallard::guarded<mallard::",
            $guarded,
            "> of <mallard/debug/guarded.hpp>\n"
        )
    };
}

/// The allocator of the type `memory_type`, and a string that uses it.
macro_rules! of_memory {
    ($memory:literal) => {
        concat!(
            "using memory_type = mallard::",
            $memory,
            ";\n",
            "template <class T>\nusing from_memory = mallard::allocator<T, memory_type>;\n",
            "using text = std::basic_string<char, std::char_traits<char>, from_memory<char>>;\n"
        )
    };
}

/// The comment before a structure that is winked out.
macro_rules! never_destroyed {
    () => {
        concat!(
            "    // Never destroyed: the end of `memory` frees everything. ",
            "Does not compile if memory would leak.\n"
        )
    };
}

/// A multipool that outlives the calls, and a structure with entries in it.
macro_rules! structure {
    ($memory:literal $of_memory:literal) => {
        concat!(
            "\n// One for the program: the next call uses the blocks again that a call has freed. One that\n",
            "// each call makes anew saves much less.\n",
            $memory,
            "& memory()\n{\n    static ",
            $memory,
            " all;\n    return all;\n}\n\n",
            r#"class structure {
public:
    void @name@(@entry@std::string_view value) { entries_.@add entry@value); }
    void clear() { entries_.clear(); }

private:
    state_type entries_{"#,
            $of_memory,
            "};\n};\n"
        )
    };
}

/// A type of object that a call makes.
macro_rules! node {
    () => {
        r#"struct node { // the type that is made there; its pointers to other nodes own nothing
    long id = 0;
    node* next = nullptr;
};
"#
    };
}

/// A type of object, and the start of a class that makes such objects.
macro_rules! object {
    () => {
        r#"struct object { // the type that is made there
    long id;
    double value;
};

// One for the program: one that each call makes anew saves much less.
class objects {
public:
"#
    };
}

/// A function that makes an object in an arena of the call.
macro_rules! objects_in_arena {
    ($end:literal $make:literal) => {
        text!(["mallard/arena.hpp"]
            for_the_trial!("arena<>")
            node!()
            "\nlong @name@(long id)\n{\n    mallard::arena<> memory; // one for each call\n"
            "    // Instead of new and std::make_unique" $end ".\n"
            "    node& made = memory." $make "<node>();\n"
            "    made.id = id;\n    return made.id;\n}\n"
        )
    };
}

const PMR_WINK_OUT_ARENA: &str = pmr_arena!(
    r#"    // Constructed in the arena, and never destroyed: the end of `memory` frees everything.
    auto& parts = *std::pmr::polymorphic_allocator<>(&memory).new_object<parts_type>();
    parts.@add@"all that the call allocates is in the arena");
    return parts.size();
}
"#
);

const PMR_ARENA: &str = pmr_arena!(
    r#"    parts_type parts(&memory);                  // and each other container of the call
    parts.@add@"all that the call allocates is in the arena");
    return parts.size();
}
"#
);

const PMR_WINK_OUT_MULTIPOOL_OVER_ARENA: &str = pmr_multipool!(
    "std::size_t"
    r#"    // Never destroyed: the end of `arena` frees everything.
    auto& state = *std::pmr::polymorphic_allocator<>(&memory).new_object<state_type>();
    state.@add@"freed blocks are used again while the call runs");
    return state.size();
}
"#
);

const PMR_MULTIPOOL_OVER_ARENA: &str = pmr_multipool!(
    "std::string"
    r#"    state_type state(&memory); // and each other container of the call
    state.@add@"freed blocks are used again while the call runs");
    return std::string(state.@first@); // what outlives the call is copied to the heap
}
"#
);

const PMR_MULTIPOOL: &str = text!(
    ["@header@" "memory_resource" "string" "string_view"]
    "using state_type = @type@;\n"
    structure!("std::pmr::unsynchronized_pool_resource" "&memory()")
);

const PMR_OBJECTS_IN_ARENA: &str = text!(
    ["memory_resource"]
    node!()
    r#"
long @name@(long id)
{
    std::pmr::monotonic_buffer_resource memory; // one for each call
    // Instead of new and std::make_unique. std::destroy_at would run the destructor; the end of
    // `memory` frees everything.
    node* const made = std::pmr::polymorphic_allocator<>(&memory).new_object<node>();
    made->id = id;
    return made->id;
}
"#
);

const PMR_OBJECT_POOL: &str = text!(
    ["memory_resource"]
    object!()
    r#"    object* @name@(long id) { return from_.new_object<object>(id, 0.0); }
    void remove(object* gone) { from_.delete_object(gone); }

private:
    std::pmr::unsynchronized_pool_resource memory_;
    std::pmr::polymorphic_allocator<> from_{&memory_};
};
"#
);

const WINK_OUT_ARENA: &str = text!(
    ["@header@" "mallard/arena.hpp" "mallard/winked.hpp" "string"]
    for_the_trial!("arena<>")
    of_memory!("arena<>")
    "using parts_type = @type@;\n"
    r#"
std::size_t @name@()
{
    memory_type memory; // one for each call
"#
    never_destroyed!()
    r#"    mallard::winked<parts_type> parts(memory);
    parts->@add@"all that the call allocates is in the arena");
    return parts->size();
}
"#
);

const ARENA: &str = text!(
    ["@header@" "mallard/allocator.hpp" "mallard/arena.hpp" "string"]
    for_the_trial!("arena<>")
    of_memory!("arena<>")
    "using parts_type = @type@;\n"
    r#"
std::size_t @name@()
{
    memory_type memory;       // one for each call
    parts_type parts(memory); // and each other container of the call
    parts.@add@"all that the call allocates is in the arena");
    return parts.size();
}
"#
);

const WINK_OUT_MULTIPOOL_OVER_ARENA: &str = text!(
    ["@header@" "mallard/arena.hpp" "mallard/multipool.hpp" "mallard/winked.hpp" "string"]
    for_the_trial!("multipool<>")
    of_memory!("multipool<mallard::arena<>>")
    "using state_type = @type@;\n"
    r#"
std::size_t @name@()
{
    memory_type memory; // one for each call
"#
    never_destroyed!()
    r#"    mallard::winked<state_type> state(memory);
    state->@add@"freed blocks are used again while the call runs");
    return state->size();
}
"#
);

const MULTIPOOL_OVER_ARENA: &str = text!(
    ["@header@" "mallard/allocator.hpp" "mallard/arena.hpp" "mallard/multipool.hpp" "string"]
    of_memory!("multipool<mallard::arena<>>")
    "using state_type = @type@;\n"
    r#"
std::string @name@()
{
    memory_type memory;       // one for each call
    state_type state(memory); // and each other container of the call
    state.@add@"freed blocks are used again while the call runs");
    return std::string(state.@first@); // what outlives the call is copied to the heap
}
"#
);

const MULTIPOOL: &str = text!(
    ["@header@" "mallard/allocator.hpp" "mallard/multipool.hpp" "string" "string_view"]
    of_memory!("multipool<>")
    "using state_type = @type@;\n"
    structure!("memory_type" "memory()")
);

const OBJECTS_IN_MULTIPOOL: &str = text!(
    ["mallard/pmr.hpp" "memory_resource"]
    object!()
    r#"    object* @name@(long id) { return from_.new_object<object>(id, 0.0); }
    void remove(object* gone) { from_.delete_object(gone); }

private:
    mallard::pmr::multipool memory_; // blocks of all sizes
    std::pmr::polymorphic_allocator<> from_{&memory_};
};
"#
);

const WINK_OUT_OBJECTS_IN_ARENA: &str =
    objects_in_arena!(". Never destroyed: the end of `memory` frees everything" "make");

const OBJECTS_IN_ARENA: &str = objects_in_arena!(": the end of `memory` destroys the object" "own");

const OBJECT_POOL: &str = text!(
    ["mallard/object_pool.hpp"]
    object!()
    r#"    // Returns a box, which destroys the object at its end.
    auto @name@(long id) { return pool_.make(id, 0.0); }

private:
    mallard::object_pool<object> pool_; // outlives its boxes
};
"#
);
