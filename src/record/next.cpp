#include "next.hpp"

#include <atomic>

#include <dlfcn.h>

namespace mallard::record {

constinit next_functions next{};
alignas(16) constinit std::byte bootstrap_memory[bootstrap_bytes]{};

namespace {

constinit std::atomic<bool> found{false};
constinit thread_local bool is_looking = false;
constinit std::atomic<std::size_t> bootstrap_used{0};

template <class Function>
void look_up(Function& into, const char* name) noexcept
{
    into = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

} // namespace

[[gnu::cold, gnu::noinline]] bool find_next() noexcept
{
    if (found.load(std::memory_order_acquire))
        return true;
    if (is_looking)
        return false;
    is_looking = true;
    // Look up malloc and free first: for a missing name, dlsym allocates the text of an error.
    look_up(next.malloc, "malloc");
    look_up(next.free, "free");
    look_up(next.calloc, "calloc");
    look_up(next.realloc, "realloc");
    look_up(next.aligned_alloc, "aligned_alloc");
    look_up(next.memalign, "memalign");
    look_up(next.posix_memalign, "posix_memalign");
    look_up(next.valloc, "valloc");
    look_up(next.pvalloc, "pvalloc");
    look_up(next.dlclose, "dlclose");
    look_up(next.reallocarray, "reallocarray");
    look_up(next.free_sized, "free_sized");
    look_up(next.free_aligned_sized, "free_aligned_sized");
    ::dlerror(); // the program must not see the error of a missing function
    is_looking = false;
    found.store(true, std::memory_order_release);
    return true;
}

void* bootstrap(std::size_t bytes, std::size_t align) noexcept
{
    if (bytes > bootstrap_bytes || align > bootstrap_bytes)
        return nullptr;
    std::size_t const room = (bytes + 15) / 16 * 16 + (align > 16 ? align : 0);
    std::size_t const at = bootstrap_used.fetch_add(room, std::memory_order_relaxed);
    if (at + room > bootstrap_bytes)
        return nullptr;
    std::byte* const start = bootstrap_memory + at;
    std::size_t const skipped = align > 16 ? -reinterpret_cast<std::size_t>(start) % align : 0;
    return start + skipped;
}

} // namespace mallard::record
