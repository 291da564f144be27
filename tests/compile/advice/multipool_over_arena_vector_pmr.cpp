// In render_document (render.cpp:40)
#include <memory_resource>
#include <string>
#include <vector>

using state_type = std::pmr::vector<std::pmr::string>;

std::string render_document()
{
    std::pmr::monotonic_buffer_resource arena; // one for each call
    std::pmr::unsynchronized_pool_resource memory(&arena);
    state_type state(&memory); // and each other container of the call
    state.emplace_back("freed blocks are used again");
    return std::string(state.front()); // what outlives the call is copied to the heap
}
