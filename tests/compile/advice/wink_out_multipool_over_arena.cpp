// In render_document (render.cpp:40)
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

std::size_t render_document()
{
    memory_type memory; // one for each call
    // Never destroyed: the end of `memory` frees everything. Does not compile if memory would leak.
    mallard::winked<state_type> state(memory);
    state->try_emplace(1, "freed blocks are used again");
    return state->size();
}
