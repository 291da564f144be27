// In render_document (render.cpp:40)
#include <memory_resource>
#include <string>
#include <vector>

using state_type = std::pmr::vector<std::pmr::string>;

std::size_t render_document()
{
    std::pmr::monotonic_buffer_resource arena; // one for each call
    std::pmr::unsynchronized_pool_resource memory(&arena);
    // Never destroyed: the end of `arena` frees everything.
    auto& state = *std::pmr::polymorphic_allocator<>(&memory).new_object<state_type>();
    state.emplace_back("freed blocks are used again");
    return state.size();
}
