// In render_document (render.cpp:40)
#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <string>
#include <unordered_map>

using memory_type = mallard::multipool<mallard::arena<>>;
template <class T>
using from_memory = mallard::allocator<T, memory_type>;
using text = std::basic_string<char, std::char_traits<char>, from_memory<char>>;
using state_type = std::unordered_map<int, text, std::hash<int>, std::equal_to<>,
                                      from_memory<std::pair<const int, text>>>;

std::string render_document()
{
    memory_type memory;       // one for each call
    state_type state(memory); // and each other container of the call
    state.try_emplace(1, "freed blocks are used again");
    return std::string(state.at(1)); // what outlives the call is copied to the heap
}
