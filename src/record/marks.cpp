// Records the marks of regions. include/mallard/trace/region.h declares these functions as weak
// symbols, so that a program calls them only if this library is loaded.
#include "thread.hpp"

#include <algorithm>
#include <cstring>

namespace mallard::record {

namespace {

/// The maximum length of a name in bytes. The length is limited because a mark must fit into a
/// segment of the ring.
constexpr std::size_t name_bytes_max = 240;

void mark(unsigned op, const char* name) noexcept
{
    if (name == nullptr)
        return;
    if (thread_state* const t = enter()) {
        append_mark(*t, op, name, std::min(std::strlen(name), name_bytes_max));
        leave(*t);
    }
}

} // namespace

} // namespace mallard::record

extern "C" {

[[gnu::visibility("default")]] void mallard_record_region_begin(const char* name) noexcept
{
    mallard::record::mark(mallard_trace_region_begin, name);
}

[[gnu::visibility("default")]] void mallard_record_region_end(const char* name) noexcept
{
    mallard::record::mark(mallard_trace_region_end, name);
}
}
