#include "next.hpp"

#include <atomic>

#include <dlfcn.h>

namespace mallard::preload {

namespace {

/// Frees a block before `next` is known.
void find_and_free(void* block) noexcept
{
    if (block != nullptr && find_next())
        next.free(block);
}

constexpr next_functions unknown() noexcept
{
    next_functions f{};
    f.free = find_and_free;
    return f;
}

} // namespace

constinit next_functions next = unknown();
constinit definition_finder find_definition = nullptr;
alignas(16) constinit std::byte bootstrap_memory[bootstrap_bytes]{};

namespace {

constinit std::atomic<bool> found{false};
constinit thread_local bool is_looking = false;
/// Whether the thread-local variables of this thread have their initial values. False in the
/// resolvers of indirect functions, because the loader runs these resolvers before it copies the
/// initial values. Volatile, because the compiler would otherwise assume that the value is always
/// true.
constinit thread_local volatile bool has_initial_values = true;
constinit std::atomic<std::size_t> bootstrap_used{0};

template <class Function>
void look_up(Function& into, const char* name) noexcept
{
    into = reinterpret_cast<Function>(find_definition == nullptr ? ::dlsym(RTLD_NEXT, name)
                                                                 : find_definition(name));
}

} // namespace

[[gnu::cold, gnu::noinline]] bool find_next() noexcept
{
    if (found.load(std::memory_order_acquire))
        return true;
    if (is_looking)
        return false;
    is_looking = true;
    // If a name is missing, dlsym allocates and frees an error message. The hooks serve these calls
    // without the next allocator, which might look up its own functions and thus call itself.
    next_functions now{};
    look_up(now.malloc, "malloc");
    look_up(now.free, "free");
    look_up(now.calloc, "calloc");
    look_up(now.realloc, "realloc");
    look_up(now.aligned_alloc, "aligned_alloc");
    look_up(now.memalign, "memalign");
    look_up(now.posix_memalign, "posix_memalign");
    look_up(now.valloc, "valloc");
    look_up(now.pvalloc, "pvalloc");
    look_up(now.malloc_usable_size, "malloc_usable_size");
    look_up(now.dlopen, "dlopen");
    look_up(now.dlclose, "dlclose");
    look_up(now.reallocarray, "reallocarray");
    look_up(now.free_sized, "free_sized");
    look_up(now.free_aligned_sized, "free_aligned_sized");
    // The program must not see the error for a missing function. In a resolver, dlerror cannot be
    // called, because the C library has no locale for the error message yet. The C library will
    // discard the error in that case.
    if (has_initial_values)
        ::dlerror();
    next = now;
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

} // namespace mallard::preload
