// The C functions of include/mallard/c/malloc.h that control malloc or use heaps. These functions
// check their arguments, set errno, and call the engine. (mallard_malloc and related functions are
// in prefixed.cpp.)
#include "arguments.hpp"

#include "../heap/heap.hpp"
#include "../heap/requests.hpp"
#include "../heap/sample.hpp"
#include "../heap/threads.hpp"

#include <mallard/c/malloc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace engine = mallard::engine;

namespace {

engine::heap& of(mallard_heap* h) noexcept
{
    return *reinterpret_cast<engine::heap*>(h);
}
const engine::heap& of(const mallard_heap* h) noexcept
{
    return *reinterpret_cast<const engine::heap*>(h);
}

[[gnu::noinline]] void* invalid() noexcept
{
    errno = EINVAL;
    return nullptr;
}

/// Copies the caller's options. Members that an older caller's struct lacks are set to 0. Returns
/// false if the struct is not valid.
bool read(const mallard_heap_options* from, mallard_heap_options& to) noexcept
{
    to = {};
    if (from == nullptr)
        return true;
    if (from->struct_bytes < sizeof from->struct_bytes || from->struct_bytes > sizeof to)
        return false;
    std::memcpy(&to, from, from->struct_bytes);
    return to.reserved == 0 &&
           (to.threads == MALLARD_HEAP_CONFINED || to.threads == MALLARD_HEAP_SHARED);
}

} // namespace

#pragma GCC visibility push(default)
extern "C" {

// --- malloc ------------------------------------------------------------------

int mallard_trim(std::size_t keep_bytes)
{
    engine::flush_all_threads();
    return engine::the_slice_heap.trim(keep_bytes) ? 1 : 0;
}

[[gnu::alias("mallard_trim"), gnu::visibility("hidden")]] int own_mallard_trim(std::size_t);

void mallard_limit(std::size_t soft_bytes, std::size_t hard_bytes, mallard_limit_met met,
                   void* context)
{
    engine::the_limits.set(soft_bytes, hard_bytes, met, context);
}

int mallard_sampling(std::size_t mean_bytes, mallard_sampled call, void* context)
{
    int const error = mean_bytes != 0 && call == nullptr
                          ? EINVAL
                          : engine::set_sampling(mean_bytes, call, context);
    if (error != 0)
        errno = error;
    return error;
}

// --- heaps -------------------------------------------------------------------

mallard_heap* mallard_heap_create(const mallard_heap_options* options)
{
    mallard_heap_options o;
    if (!read(options, o))
        return static_cast<mallard_heap*>(invalid());
    engine::heap* const h = engine::make_heap(o.threads == MALLARD_HEAP_SHARED);
    if (h == nullptr)
        return static_cast<mallard_heap*>(mallard::os::out_of_memory());
    h->limit.set(o.limit_soft_bytes, o.limit_bytes, o.met, o.context);
    return reinterpret_cast<mallard_heap*>(h);
}

void mallard_heap_destroy(mallard_heap* heap)
{
    if (heap != nullptr)
        engine::unmake(of(heap));
}

void* mallard_heap_allocate(mallard_heap* heap, std::size_t bytes)
{
    if (heap == nullptr) [[unlikely]]
        return invalid();
    return engine::allocate(of(heap), bytes);
}

void* mallard_heap_allocate_aligned(mallard_heap* heap, std::size_t bytes, std::size_t align)
{
    if (heap == nullptr || !mallard::is_power_of_two(align)) [[unlikely]]
        return invalid();
    return align <= 16 ? engine::allocate(of(heap), bytes)
                       : engine::allocate_slowly(of(heap), bytes, align);
}

void* mallard_heap_calloc(mallard_heap* heap, std::size_t count, std::size_t bytes)
{
    if (heap == nullptr)
        return invalid();
    std::size_t all = 0;
    return mallard::product(count, bytes, all) ? engine::allocate_zeroed(of(heap), all) : nullptr;
}

void* mallard_heap_realloc(mallard_heap* heap, void* block, std::size_t bytes)
{
    return block == nullptr ? mallard_heap_allocate(heap, bytes) : mallard_realloc(block, bytes);
}

void mallard_heap_free(mallard_heap* heap, void* block)
{
    if (heap != nullptr)
        engine::deallocate(of(heap), block);
}

void mallard_heap_reset(mallard_heap* heap)
{
    if (heap != nullptr)
        engine::reset(of(heap));
}

void mallard_heap_release(mallard_heap* heap)
{
    if (heap != nullptr)
        engine::release(of(heap));
}

void mallard_heap_trim(mallard_heap* heap, std::size_t keep_bytes)
{
    if (heap != nullptr)
        engine::trim(of(heap), keep_bytes);
}

void mallard_heap_adopt(mallard_heap* heap)
{
    if (heap != nullptr && of(heap).fresh.thread != nullptr)
        engine::thread_of(of(heap)).store(engine::this_thread(), std::memory_order_relaxed);
}

mallard_fresh* mallard_heap_fresh(mallard_heap* heap, int layout)
{
    return heap != nullptr && layout == MALLARD_FRESH_LAYOUT ? &of(heap).fresh : nullptr;
}

void mallard_heap_limit(mallard_heap* heap, std::size_t soft_bytes, std::size_t hard_bytes,
                        mallard_limit_met met, void* context)
{
    if (heap != nullptr)
        of(heap).limit.set(soft_bytes, hard_bytes, met, context);
}

int mallard_heap_owns(const mallard_heap* heap, const void* p)
{
    return heap != nullptr && engine::owns(of(heap), p) ? 1 : 0;
}

int mallard_heap_stats(mallard_heap* heap, mallard_heap_statistics* out)
{
    if (heap == nullptr || out == nullptr || out->struct_bytes < sizeof out->struct_bytes) {
        errno = EINVAL;
        return EINVAL;
    }
    engine::heap_numbers const n = engine::count(of(heap));
    mallard_heap_statistics const all = {
        .struct_bytes = out->struct_bytes,
        .blocks_live = n.blocks_live,
        .bytes_live = n.bytes_live,
        .bytes_taken = of(heap).limit.held(),
        .bytes_taken_max = of(heap).held_max.load(std::memory_order_relaxed),
        .chunks = n.chunks,
        .large_blocks = n.large_blocks,
    };
    std::memset(out, 0, all.struct_bytes);
    std::memcpy(out, &all, std::min(all.struct_bytes, sizeof all));
    return 0;
}

} // extern "C"
#pragma GCC visibility pop
