//! The code of cards in C++.

/// The text with the standard's memory resources.
pub fn pmr(rule: &str) -> Option<&'static str> {
    Some(match rule {
        "wink-out-arena" => PMR_WINK_OUT_ARENA,
        "arena" => PMR_ARENA,
        "wink-out-multipool-over-arena" => PMR_WINK_OUT_MULTIPOOL_OVER_ARENA,
        "multipool-over-arena" => PMR_MULTIPOOL_OVER_ARENA,
        "multipool" => PMR_MULTIPOOL,
        "object-pool" => PMR_OBJECT_POOL,
        _ => return None,
    })
}

/// The text with Mallard.
pub fn mallard(rule: &str) -> Option<&'static str> {
    Some(match rule {
        "wink-out-arena" => WINK_OUT_ARENA,
        "arena" => ARENA,
        "wink-out-multipool-over-arena" => WINK_OUT_MULTIPOOL_OVER_ARENA,
        "multipool-over-arena" => MULTIPOOL_OVER_ARENA,
        "multipool" => MULTIPOOL,
        "object-pool" => OBJECT_POOL,
        _ => return None,
    })
}

/// Joins a text from its headers and its parts.
macro_rules! text {
    ([$($header:literal)*] $($part:expr)*) => {
        concat!("\n// In @where@\n", $("#include <", $header, ">\n",)* "\n", $($part,)*)
    };
}

/// Containers in an arena, in the standard's forms.
macro_rules! pmr_arena {
    ($($part:expr)*) => {
        text!(["memory_resource" "string" "vector"] "std::size_t @name@()\n{\n" $($part)*)
    };
}

/// A map in a multipool, in the standard's forms.
macro_rules! pmr_multipool {
    ($result:literal $($part:expr)*) => {
        text!(["map" "memory_resource" "string"]
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
    ($indent:literal $memory:literal) => {
        concat!(
            $indent,
            "using memory_type = mallard::",
            $memory,
            ";\n",
            $indent,
            "template <class T>\n",
            $indent,
            "using from_memory = mallard::allocator<T, memory_type>;\n",
            $indent,
            "using text = std::basic_string<char, std::char_traits<char>, from_memory<char>>;\n"
        )
    };
}

/// A map that uses `memory_type`.
macro_rules! map_of_memory {
    () => {
        "std::map<int, text, std::less<>, from_memory<std::pair<const int, text>>>"
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

/// The start of a structure with entries.
macro_rules! structure {
    () => {
        r#"class structure {
public:
    void @name@(int key, std::string_view value) { entries_[key] = value; }
    void remove(int key) { entries_.erase(key); }

private:
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

class objects {
public:
"#
    };
}

const PMR_WINK_OUT_ARENA: &str = pmr_arena!(
    r#"    std::pmr::monotonic_buffer_resource memory; // one for each call
    using parts_type = std::pmr::vector<std::pmr::string>;
    // Constructed in the arena, and never destroyed: the end of `memory` frees everything.
    auto& parts = *std::pmr::polymorphic_allocator<>(&memory).new_object<parts_type>();
    parts.emplace_back("all that the call allocates is in the arena");
    return parts.size();
}
"#
);

const PMR_ARENA: &str = pmr_arena!(
    r#"    std::pmr::monotonic_buffer_resource memory;        // one for each call
    std::pmr::vector<std::pmr::string> parts(&memory); // and each other container of the call
    parts.emplace_back("all that the call allocates is in the arena");
    return parts.size();
}
"#
);

const PMR_WINK_OUT_MULTIPOOL_OVER_ARENA: &str = pmr_multipool!(
    "std::size_t"
    r#"    using state_type = std::pmr::map<int, std::pmr::string>;
    // Never destroyed: the end of `arena` frees everything.
    auto& state = *std::pmr::polymorphic_allocator<>(&memory).new_object<state_type>();
    state[1] = "freed blocks are used again while the call runs";
    return state.size();
}
"#
);

const PMR_MULTIPOOL_OVER_ARENA: &str = pmr_multipool!(
    "std::string"
    r#"    std::pmr::map<int, std::pmr::string> state(&memory); // and each other container of the call
    state[1] = "freed blocks are used again while the call runs";
    return std::string(state[1]); // what outlives the call is copied to the heap
}
"#
);

const PMR_MULTIPOOL: &str = text!(
    ["map" "memory_resource" "string" "string_view"]
    structure!()
    r#"    std::pmr::unsynchronized_pool_resource memory_; // before the containers that use it
    std::pmr::map<int, std::pmr::string> entries_{&memory_};
};
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
    ["mallard/arena.hpp" "mallard/winked.hpp" "string" "vector"]
    for_the_trial!("arena<>")
    of_memory!("" "arena<>")
    r#"
std::size_t @name@()
{
    memory_type memory; // one for each call
"#
    never_destroyed!()
    r#"    mallard::winked<std::vector<text, from_memory<text>>> parts(memory);
    parts->emplace_back("all that the call allocates is in the arena");
    return parts->size();
}
"#
);

const ARENA: &str = text!(
    ["mallard/allocator.hpp" "mallard/arena.hpp" "string" "vector"]
    for_the_trial!("arena<>")
    of_memory!("" "arena<>")
    r#"
std::size_t @name@()
{
    memory_type memory;                                 // one for each call
    std::vector<text, from_memory<text>> parts(memory); // and each other container of the call
    parts.emplace_back("all that the call allocates is in the arena");
    return parts.size();
}
"#
);

const WINK_OUT_MULTIPOOL_OVER_ARENA: &str = text!(
    ["mallard/arena.hpp" "mallard/multipool.hpp" "mallard/winked.hpp" "map" "string"]
    for_the_trial!("multipool<>")
    of_memory!("" "multipool<mallard::arena<>>")
    "using state_type = " map_of_memory!() ";\n"
    r#"
std::size_t @name@()
{
    memory_type memory; // one for each call
"#
    never_destroyed!()
    r#"    mallard::winked<state_type> state(memory);
    (*state)[1] = "freed blocks are used again while the call runs";
    return state->size();
}
"#
);

const MULTIPOOL_OVER_ARENA: &str = text!(
    ["mallard/allocator.hpp" "mallard/arena.hpp" "mallard/multipool.hpp" "map" "string"]
    of_memory!("" "multipool<mallard::arena<>>")
    "using state_type = " map_of_memory!() ";\n"
    r#"
std::string @name@()
{
    memory_type memory;       // one for each call
    state_type state(memory); // and each other container of the call
    state[1] = "freed blocks are used again while the call runs";
    return std::string(state[1]); // what outlives the call is copied to the heap
}
"#
);

const MULTIPOOL: &str = text!(
    ["mallard/allocator.hpp" "mallard/multipool.hpp" "map" "string" "string_view"]
    structure!()
    of_memory!("    " "multipool<>")
    "\n    memory_type memory_; // before the containers that use it\n"
    "    " map_of_memory!() " entries_{memory_};\n};\n"
);

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
