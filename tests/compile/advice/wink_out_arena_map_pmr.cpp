// In render_document (render.cpp:40)
#include <map>
#include <memory_resource>
#include <string>

using parts_type = std::pmr::map<int, std::pmr::string>;

std::size_t render_document()
{
    std::pmr::monotonic_buffer_resource memory; // one for each call
    // Constructed in the arena, and never destroyed: the end of `memory` frees everything.
    auto& parts = *std::pmr::polymorphic_allocator<>(&memory).new_object<parts_type>();
    parts.try_emplace(1, "all that the call allocates is in the arena");
    return parts.size();
}
