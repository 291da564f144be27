// What a program asks for, in all its forms, in terms of thread caches. `allocate` and `deallocate`
// are in thread_cache.hpp. None of these changes errno; null is a refusal.
#pragma once

#include "thread_cache.hpp"

namespace mallard::engine {

/// What a pointer is, if it is a block in use.
struct found {
    reservation* in;
    std::size_t slice;
    entry what;
    slab* of; ///< null: a large block

    bool is_span() const noexcept { return of != nullptr && of->index >= span_class_first; }
};

/// Stops the process at what is no block, or a free one; `call` says in what.
found find(const void* p, const char* call) noexcept;

/// Of the first class that has at least `bytes`, a block's, and such an alignment, a
/// slice's at most: blocks lie in their slab one after the other, and slabs begin with
/// slices.
inline class_offset offset_of_aligned(std::size_t bytes, std::size_t align) noexcept
{
    std::size_t index = block_class::of(bytes > align ? bytes : align);
    while (index < span_class_first && block_class::align(index) < align)
        index += 1;
    return offset_of_class(index);
}

inline constexpr std::size_t align_looked_up_max = 64;

/// Up to it, a size that is a multiple of an alignment has a class that is one.
static_assert([] {
    for (std::size_t align = 16; align <= align_looked_up_max; align *= 2)
        for (std::size_t bytes = align; bytes <= looked_up_max; bytes += align)
            if (block_class::bytes(block_class::of(bytes)) % align != 0)
                return false;
    return true;
}());

void* allocate_aligned_rare(std::size_t bytes, std::size_t align) noexcept;

/// `align` is a power of two.
[[gnu::always_inline]] inline void* allocate_aligned(std::size_t bytes, std::size_t align) noexcept
{
    if (bytes > looked_up_max || align > align_looked_up_max) [[unlikely]]
        return allocate_aligned_rare(bytes, align);
    std::size_t const whole = align_up(bytes | (bytes == 0), align);
    return pop(shown_cache(), offsets_by_16[(whole + 15) / 16], bytes);
}

/// Reads as zero.
void* allocate_zeroed(std::size_t bytes) noexcept;

/// The block with at least `bytes`, perhaps elsewhere; what was in it still is. Null: it is
/// as it was.
void* reallocate(void* block, std::size_t bytes) noexcept;

/// All of a block may be written to. Of what is none the process stops, and `call` says
/// in what.
std::size_t usable_bytes(const void* block, const char* call) noexcept;

/// Stops the process if `bytes` is not what a block was made with, as far as its kind says.
[[gnu::noinline]] void deallocate_doubtful(void* block, std::size_t bytes) noexcept;

/// The caller says how large it was made. The class comes from the map all the same: a wrong
/// size cannot misplace a block. That a large one is not small, and the reverse, is seen; a
/// small one as another small one, which programs with a missing virtual destructor do, is not.
/// Not for blocks of a large alignment, which may be larger than anybody asked.
[[gnu::always_inline]] inline void deallocate_sized(void* block, std::size_t bytes) noexcept
{
    thread_cache* const cache = shown_cache();
    std::size_t const g = reservations[0].slice_of(block);
    if (!reservations[0].has(g) || bytes >= slice_bytes) [[unlikely]]
        return deallocate_doubtful(block, bytes);
    class_offset const offset = reservations[0].entry_at(g) ^ cache->tag;
    if (offset >= offset_of_class(span_class_first)) [[unlikely]]
        return deallocate_doubtful(block, bytes);
    push(block, cache, offset);
}

[[gnu::always_inline]] inline void deallocate_sized(void* block, std::size_t bytes,
                                                    std::size_t align) noexcept
{
    if (align <= 16)
        deallocate_sized(block, bytes);
    else
        deallocate(block);
}

} // namespace mallard::engine
