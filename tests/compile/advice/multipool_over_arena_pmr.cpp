// In render_document (render.cpp:40)
#include <map>
#include <memory_resource>
#include <string>

std::string render_document()
{
    std::pmr::monotonic_buffer_resource arena; // one for each call
    std::pmr::unsynchronized_pool_resource memory(&arena);
    std::pmr::map<int, std::pmr::string> state(&memory); // and each other container of the call
    state[1] = "freed blocks are used again while the call runs";
    return std::string(state[1]); // what outlives the call is copied to the heap
}
