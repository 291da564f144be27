// malloc and related functions, as the program calls them. The functions call the next allocator
// and append events to the ring.
#include "../preload/next.hpp"
#include "sampled.hpp"
#include "thread.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>

namespace mallard::record {

using namespace preload;

namespace {

constexpr std::uint64_t flags_mask = ~((std::uint64_t{1} << mallard_trace_flags_shift) - 1);

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

/// Prefetches the words that a free reads first, which are before the block or at its start.
/// Without the recorder, the processor loads these words out of order, while the previous free is
/// running.
[[gnu::always_inline]] inline void prefetch_ends(const void* block) noexcept
{
    __builtin_prefetch(static_cast<const std::byte*>(block) - 16);
    __builtin_prefetch(block);
}

/// Returns whether the block belongs to the next allocator, that is, is not null and not from
/// `bootstrap`.
[[gnu::always_inline]] inline bool is_freeable(const void* block) noexcept
{
    if (block == nullptr) [[unlikely]] {
        this_thread.from = 0;
        return false;
    }
    return !is_bootstrap(block);
}

/// Records the free of a block, and calls `real`, which frees the block.
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

/// Serves realloc for a block that was allocated by `bootstrap`, before the next allocator was
/// known. The size of such a block is not stored, but all bytes up to the end of the bootstrap
/// memory can be read.
[[gnu::cold, gnu::noinline]] void* move_from_bootstrap(void* block, std::size_t bytes) noexcept
{
    void* const moved = ::malloc(bytes);
    std::size_t const left = bootstrap_left(block);
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
    // After a failed realloc, the old block is still in use. So a second event cancels the event
    // `realloc_from`, even if sampling does not choose this call.
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

namespace mallard::preload {

/// The implementation of the functions in preload/family.hpp.
struct hooks {
    template <class Real>
    [[gnu::always_inline]] static void* allocate(unsigned op, std::size_t bytes,
                                                 unsigned align_log2, Real real) noexcept
    {
        return record::allocate(op, bytes, align_log2, real);
    }

    template <class Real>
    [[gnu::always_inline]] static void deallocate(unsigned op, void* block, std::size_t bytes,
                                                  unsigned align_log2, Real real) noexcept
    {
        if (record::is_freeable(block)) [[likely]]
            record::deallocate(block, mallard_trace_pack(bytes, align_log2, op, 0), real);
    }

    template <class Real>
    [[gnu::always_inline]] static void* reallocate(void* block, std::size_t bytes,
                                                   Real real) noexcept
    {
        return record::reallocate(block, bytes, real);
    }

    static unsigned log2_of(std::size_t align) noexcept
    {
        return static_cast<unsigned>(std::bit_width(align - (align != 0)));
    }

    static void after_dlclose() noexcept { os::forget_code(); }
};

} // namespace mallard::preload

#include "../preload/family.hpp"
