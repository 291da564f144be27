// In render_document (render.cpp:40)
#include <memory_resource>
#include <string>
#include <vector>

std::size_t render_document()
{
    std::pmr::monotonic_buffer_resource memory;        // one for each call
    std::pmr::vector<std::pmr::string> parts(&memory); // and each other container of the call
    parts.emplace_back("all that the call allocates is in the arena");
    return parts.size();
}
