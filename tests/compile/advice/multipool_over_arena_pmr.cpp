// In render_document (render.cpp:40)
#include <map>
#include <memory_resource>
#include <string>

using state_type = std::pmr::map<int, std::pmr::string>;

std::string render_document()
{
    std::pmr::monotonic_buffer_resource arena; // one for each call
    std::pmr::unsynchronized_pool_resource memory(&arena);
    state_type state(&memory); // and each other container of the call
    state.try_emplace(1, "freed blocks are used again");
    return std::string(state.at(1)); // what outlives the call is copied to the heap
}
