// malloc and its family, as the program sees them: they call the next allocator and append events.
#include "next.hpp"
#include "sampled.hpp"
#include "thread.hpp"

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace mallard::record {

namespace {

constexpr std::uint64_t flags_mask = ~((std::uint64_t{1} << mallard_trace_flags_shift) - 1);
constexpr unsigned page_log2 = 12;

unsigned log2_of(std::size_t align) noexcept
{
    return static_cast<unsigned>(std::bit_width(align - (align != 0)));
}

/// The product of two sizes; the largest number if the product is larger.
std::size_t product(std::size_t a, std::size_t b) noexcept
{
    std::size_t result = 0;
    return __builtin_mul_overflow(a, b, &result) ? SIZE_MAX : result;
}

/// Calls `real`, which allocates, and records the call.
template <class Real>
[[gnu::always_inline]] inline void* allocate(unsigned op, std::size_t bytes, unsigned align_log2,
                                             Real real) noexcept
{
    thread_state* const t = enter();
    if (t == nullptr) [[unlikely]]
        return find_next() ? real() : bootstrap(bytes, std::size_t{1} << align_log2);
    std::uint64_t const from = std::exchange(t->from, 0) & flags_mask;
    std::uint64_t const begin = begin_of_call(*t);
    void* const block = real();
    std::uint64_t const end = ticks_after();
    if (is_wanted(*t, block, bytes))
        append(*t, end, block, mallard_trace_pack(bytes, align_log2, op, 0) | from,
               duration(begin, end), this_frame());
    leave(*t);
    return block;
}

/// Prefetches what a free reads first: the words before the block, or the block itself. Without the
/// recorder, the processor loads these words out of order, while the previous free is running.
[[gnu::always_inline]] inline void prefetch_ends(const void* block) noexcept
{
    __builtin_prefetch(static_cast<const std::byte*>(block) - 16);
    __builtin_prefetch(block);
}

/// Records that the block is about to be freed, and calls `real`, which frees the block.
template <class Real>
[[gnu::always_inline]] inline void deallocate(void* block, std::uint64_t what, Real real) noexcept
{
    prefetch_ends(block);
    bool const was_known = is_known(block);
    thread_state* const t = enter();
    if (t == nullptr) [[unlikely]]
        return real();
    what |= std::exchange(t->from, 0);
    if (was_known)
        append(*t, ticks(), block, what, 0, the.has_free_stacks ? this_frame() : nullptr);
    bool const is_timed = is_timed_free(*t);
    leave(*t);
    if (is_timed) [[unlikely]]
        return time_free(real);
    real();
}

/// Whether the block belongs to the next allocator: not null, and not from `bootstrap`.
[[gnu::always_inline]] inline bool is_freeable(const void* block) noexcept
{
    if (block == nullptr) [[unlikely]] {
        this_thread.from = 0;
        return false;
    }
    return !is_bootstrap(block);
}

/// Serves realloc of a block of `bootstrap`. The size of such a block is not known, but all bytes
/// up to the end of the memory can be read.
[[gnu::cold, gnu::noinline]] void* move_from_bootstrap(void* block, std::size_t bytes) noexcept
{
    void* const moved = ::malloc(bytes);
    auto const left = static_cast<std::size_t>(bootstrap_memory + bootstrap_bytes -
                                               static_cast<std::byte*>(block));
    if (moved != nullptr)
        std::memcpy(moved, block, bytes < left ? bytes : left);
    return moved;
}

template <class Real>
[[gnu::always_inline]] inline void* reallocate(void* block, std::size_t bytes, Real real) noexcept
{
    if (is_bootstrap(block)) [[unlikely]]
        return move_from_bootstrap(block, bytes);
    bool const was_known = is_known(block);
    thread_state* const t = enter();
    if (t == nullptr) [[unlikely]]
        return find_next() ? real() : bootstrap(bytes);
    t->from = 0;
    if (was_known)
        append(*t, ticks(), block, mallard_trace_pack(0, 0, mallard_trace_realloc_from, 0), 0,
               this_frame());
    t->now.store(in_call, std::memory_order_relaxed);
    std::uint64_t const begin = begin_of_call(*t);
    void* const moved = real();
    std::uint64_t const end = ticks_after();
    // After a failure the old block is still in use. So its realloc_from is cancelled, whether this
    // call is chosen as a sample or not.
    bool const has_failed = moved == nullptr && bytes != 0;
    bool const is_cancelled = has_failed && was_known && the.samples;
    if (is_cancelled ? sampled.insert(block) : is_wanted(*t, moved, bytes)) {
        auto const what = mallard_trace_pack(bytes, 0, mallard_trace_realloc_to, 0);
        std::uint64_t const took = duration(begin, end);
        if (was_known && t->stack.depth != 0) [[likely]]
            append_with_last_stack(*t, end, moved, what, took);
        else
            append(*t, end, moved, what, took, this_frame());
    }
    leave(*t);
    return moved;
}

} // namespace

} // namespace mallard::record

using namespace mallard::record;

#pragma GCC visibility push(default)

extern "C" {

void* malloc(std::size_t bytes)
{
    return allocate(mallard_trace_malloc, bytes, 0, [=] { return next.malloc(bytes); });
}

void* calloc(std::size_t count, std::size_t bytes)
{
    return allocate(mallard_trace_calloc, product(count, bytes), 0,
                    [=] { return next.calloc(count, bytes); });
}

void* realloc(void* block, std::size_t bytes)
{
    return reallocate(block, bytes, [=] { return next.realloc(block, bytes); });
}

void* reallocarray(void* block, std::size_t count, std::size_t bytes)
{
    std::size_t const all = product(count, bytes);
    return reallocate(block, all, [=] {
        return next.reallocarray != nullptr ? next.reallocarray(block, count, bytes)
                                            : next.realloc(block, all);
    });
}

void* aligned_alloc(std::size_t align, std::size_t bytes)
{
    return allocate(mallard_trace_aligned_alloc, bytes, log2_of(align),
                    [=] { return next.aligned_alloc(align, bytes); });
}

void* memalign(std::size_t align, std::size_t bytes)
{
    return allocate(mallard_trace_memalign, bytes, log2_of(align),
                    [=] { return next.memalign(align, bytes); });
}

int posix_memalign(void** block, std::size_t align, std::size_t bytes)
{
    int error = 0;
    bool is_called = false;
    void* const got = allocate(mallard_trace_posix_memalign, bytes, log2_of(align), [&] {
        is_called = true;
        error = next.posix_memalign(block, align, bytes);
        return error == 0 ? *block : nullptr;
    });
    if (!is_called) [[unlikely]] {
        *block = got;
        return got == nullptr ? ENOMEM : 0;
    }
    return error;
}

void* valloc(std::size_t bytes)
{
    return allocate(mallard_trace_valloc, bytes, page_log2, [=] { return next.valloc(bytes); });
}

void* pvalloc(std::size_t bytes)
{
    return allocate(mallard_trace_pvalloc, bytes, page_log2, [=] { return next.pvalloc(bytes); });
}

void free(void* block)
{
    if (is_freeable(block)) [[likely]]
        deallocate(block, mallard_trace_pack(0, 0, mallard_trace_free, 0),
                   [=] { next.free(block); });
}

void cfree(void* block)
{
    free(block);
}

void free_sized(void* block, std::size_t bytes)
{
    if (!is_freeable(block))
        return;
    deallocate(block, mallard_trace_pack(bytes, 0, mallard_trace_free_sized, 0), [=] {
        if (next.free_sized != nullptr)
            next.free_sized(block, bytes);
        else
            next.free(block);
    });
}

void free_aligned_sized(void* block, std::size_t align, std::size_t bytes)
{
    if (!is_freeable(block))
        return;
    deallocate(block,
               mallard_trace_pack(bytes, log2_of(align), mallard_trace_free_aligned_sized, 0), [=] {
                   if (next.free_aligned_sized != nullptr)
                       next.free_aligned_sized(block, align, bytes);
                   else
                       next.free(block);
               });
}

int dlclose(void* library)
{
    int const result = find_next() ? next.dlclose(library) : -1;
    mallard::os::forget_code(); // another module may be loaded at the same addresses
    return result;
}

} // extern "C"

#pragma GCC visibility pop
