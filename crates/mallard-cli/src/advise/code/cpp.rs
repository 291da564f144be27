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

const PMR_WINK_OUT_ARENA: &str = r#"
// In @where@
#include <memory_resource>
#include <string>
#include <vector>

std::size_t @name@()
{
    std::pmr::monotonic_buffer_resource memory; // one for each call
    using parts_type = std::pmr::vector<std::pmr::string>;
    // Constructed in the arena, and never destroyed: the end of `memory` frees everything.
    auto& parts = *std::pmr::polymorphic_allocator<>(&memory).new_object<parts_type>();
    parts.emplace_back("all that the call allocates is in the arena");
    return parts.size();
}
"#;

const PMR_ARENA: &str = r#"
// In @where@
#include <memory_resource>
#include <string>
#include <vector>

std::size_t @name@()
{
    std::pmr::monotonic_buffer_resource memory;        // one for each call
    std::pmr::vector<std::pmr::string> parts(&memory); // and each other container of the call
    parts.emplace_back("all that the call allocates is in the arena");
    return parts.size();
}
"#;

const PMR_WINK_OUT_MULTIPOOL_OVER_ARENA: &str = r#"
// In @where@
#include <map>
#include <memory_resource>
#include <string>

std::size_t @name@()
{
    std::pmr::monotonic_buffer_resource arena; // one for each call
    std::pmr::unsynchronized_pool_resource memory(&arena);
    using state_type = std::pmr::map<int, std::pmr::string>;
    // Never destroyed: the end of `arena` frees everything.
    auto& state = *std::pmr::polymorphic_allocator<>(&memory).new_object<state_type>();
    state[1] = "freed blocks are used again while the call runs";
    return state.size();
}
"#;

const PMR_MULTIPOOL_OVER_ARENA: &str = r#"
// In @where@
#include <map>
#include <memory_resource>
#include <string>

std::string @name@()
{
    std::pmr::monotonic_buffer_resource arena; // one for each call
    std::pmr::unsynchronized_pool_resource memory(&arena);
    std::pmr::map<int, std::pmr::string> state(&memory); // and each other container of the call
    state[1] = "freed blocks are used again while the call runs";
    return std::string(state[1]); // what outlives the call is copied to the heap
}
"#;

const PMR_MULTIPOOL: &str = r#"
// In @where@
#include <map>
#include <memory_resource>
#include <string>
#include <string_view>

class structure {
public:
    void @name@(int key, std::string_view value) { entries_[key] = value; }
    void remove(int key) { entries_.erase(key); }

private:
    std::pmr::unsynchronized_pool_resource memory_; // before the containers that use it
    std::pmr::map<int, std::pmr::string> entries_{&memory_};
};
"#;

const PMR_OBJECT_POOL: &str = r#"
// In @where@
#include <memory_resource>

struct object { // the type that is made there
    long id;
    double value;
};

class objects {
public:
    object* @name@(long id) { return from_.new_object<object>(id, 0.0); }
    void remove(object* gone) { from_.delete_object(gone); }

private:
    std::pmr::unsynchronized_pool_resource memory_;
    std::pmr::polymorphic_allocator<> from_{&memory_};
};
"#;

const WINK_OUT_ARENA: &str = r#"
// In @where@
#include <mallard/arena.hpp>
#include <mallard/winked.hpp>
#include <string>
#include <vector>

// For the trial: mallard::guarded<mallard::arena<>> of <mallard/debug/guarded.hpp>
using memory_type = mallard::arena<>;
template <class T>
using from_memory = mallard::allocator<T, memory_type>;
using text = std::basic_string<char, std::char_traits<char>, from_memory<char>>;

std::size_t @name@()
{
    memory_type memory; // one for each call
    // Never destroyed: the end of `memory` frees everything. Does not compile if memory would leak.
    mallard::winked<std::vector<text, from_memory<text>>> parts(memory);
    parts->emplace_back("all that the call allocates is in the arena");
    return parts->size();
}
"#;

const ARENA: &str = r#"
// In @where@
#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>
#include <string>
#include <vector>

// For the trial: mallard::guarded<mallard::arena<>> of <mallard/debug/guarded.hpp>
using memory_type = mallard::arena<>;
template <class T>
using from_memory = mallard::allocator<T, memory_type>;
using text = std::basic_string<char, std::char_traits<char>, from_memory<char>>;

std::size_t @name@()
{
    memory_type memory;                                 // one for each call
    std::vector<text, from_memory<text>> parts(memory); // and each other container of the call
    parts.emplace_back("all that the call allocates is in the arena");
    return parts.size();
}
"#;

const WINK_OUT_MULTIPOOL_OVER_ARENA: &str = r#"
// In @where@
#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <mallard/winked.hpp>
#include <map>
#include <string>

// For the trial: mallard::guarded<mallard::multipool<>> of <mallard/debug/guarded.hpp>
using memory_type = mallard::multipool<mallard::arena<>>;
template <class T>
using from_memory = mallard::allocator<T, memory_type>;
using text = std::basic_string<char, std::char_traits<char>, from_memory<char>>;
using state_type = std::map<int, text, std::less<>, from_memory<std::pair<const int, text>>>;

std::size_t @name@()
{
    memory_type memory; // one for each call
    // Never destroyed: the end of `memory` frees everything. Does not compile if memory would leak.
    mallard::winked<state_type> state(memory);
    (*state)[1] = "freed blocks are used again while the call runs";
    return state->size();
}
"#;

const MULTIPOOL_OVER_ARENA: &str = r#"
// In @where@
#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <map>
#include <string>

using memory_type = mallard::multipool<mallard::arena<>>;
template <class T>
using from_memory = mallard::allocator<T, memory_type>;
using text = std::basic_string<char, std::char_traits<char>, from_memory<char>>;
using state_type = std::map<int, text, std::less<>, from_memory<std::pair<const int, text>>>;

std::string @name@()
{
    memory_type memory;       // one for each call
    state_type state(memory); // and each other container of the call
    state[1] = "freed blocks are used again while the call runs";
    return std::string(state[1]); // what outlives the call is copied to the heap
}
"#;

const MULTIPOOL: &str = r#"
// In @where@
#include <mallard/allocator.hpp>
#include <mallard/multipool.hpp>
#include <map>
#include <string>
#include <string_view>

class structure {
public:
    void @name@(int key, std::string_view value) { entries_[key] = value; }
    void remove(int key) { entries_.erase(key); }

private:
    using memory_type = mallard::multipool<>;
    template <class T>
    using from_memory = mallard::allocator<T, memory_type>;
    using text = std::basic_string<char, std::char_traits<char>, from_memory<char>>;

    memory_type memory_; // before the containers that use it
    std::map<int, text, std::less<>, from_memory<std::pair<const int, text>>> entries_{memory_};
};
"#;

const OBJECT_POOL: &str = r#"
// In @where@
#include <mallard/object_pool.hpp>

struct object { // the type that is made there
    long id;
    double value;
};

class objects {
public:
    // Returns a box, which destroys the object at its end.
    auto @name@(long id) { return pool_.make(id, 0.0); }

private:
    mallard::object_pool<object> pool_; // outlives its boxes
};
"#;
