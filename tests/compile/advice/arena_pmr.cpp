// In render_document (render.cpp:40)
#include <memory_resource>
#include <string>
#include <vector>

using parts_type = std::pmr::vector<std::pmr::string>;

std::size_t render_document()
{
    std::pmr::monotonic_buffer_resource memory; // one for each call
    parts_type parts(&memory);                  // and each other container of the call
    parts.emplace_back("all that the call allocates is in the arena");
    return parts.size();
}
