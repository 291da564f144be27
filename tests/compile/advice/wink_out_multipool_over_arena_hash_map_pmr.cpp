// In render_document (render.cpp:40)
#include <memory_resource>
#include <string>
#include <unordered_map>

using state_type = std::pmr::unordered_map<int, std::pmr::string>;

std::size_t render_document()
{
    std::pmr::monotonic_buffer_resource arena; // one for each call
    std::pmr::unsynchronized_pool_resource memory(&arena);
    // Never destroyed: the end of `arena` frees everything.
    auto& state = *std::pmr::polymorphic_allocator<>(&memory).new_object<state_type>();
    state.try_emplace(1, "freed blocks are used again");
    return state.size();
}
