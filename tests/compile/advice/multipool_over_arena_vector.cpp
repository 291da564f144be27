// In render_document (render.cpp:40)
#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <string>
#include <vector>

using memory_type = mallard::multipool<mallard::arena<>>;
template <class T>
using from_memory = mallard::allocator<T, memory_type>;
using text = std::basic_string<char, std::char_traits<char>, from_memory<char>>;
using state_type = std::vector<text, from_memory<text>>;

std::string render_document()
{
    memory_type memory;       // one for each call
    state_type state(memory); // and each other container of the call
    state.emplace_back("freed blocks are used again");
    return std::string(state.front()); // what outlives the call is copied to the heap
}
