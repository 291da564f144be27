// The requests of a program that thread_cache.hpp does not serve, namely aligned and zeroed blocks,
// realloc, and sized frees. If there is no memory, a function returns null and sets errno to
// ENOMEM. Otherwise errno does not change.
#pragma once

#include "thread_cache.hpp"

namespace mallard::engine {

/// Up to this alignment, and up to `looked_up_max` bytes, every size that is a multiple of the
/// alignment has a class whose block size is also a multiple of the alignment.
inline constexpr std::size_t align_looked_up_max = 64;
static_assert([] {
    for (std::size_t align = 16; align <= align_looked_up_max; align *= 2)
        for (std::size_t bytes = align; bytes <= looked_up_max; bytes += align)
            if (block_class::bytes(block_class::of(bytes)) % align != 0)
                return false;
    return true;
}());

/// Allocates a block that no free list caches (see large.hpp). Unless `zero` is null, sets `*zero`
/// to whether all bytes of the block are 0.
[[gnu::noinline]] void* allocate_large(std::size_t bytes, std::size_t align,
                                       bool* zero = nullptr) noexcept;

void* allocate_aligned_rare(std::size_t bytes, std::size_t align) noexcept;

/// Allocates a block whose address is a multiple of `align`, which must be a power of two.
[[gnu::always_inline]] inline void* allocate_aligned(std::size_t bytes, std::size_t align) noexcept
{
    if (bytes > looked_up_max || align > align_looked_up_max) [[unlikely]]
        return allocate_aligned_rare(bytes, align);
    std::size_t const whole = align_up(bytes | (bytes == 0), align);
    return pop(shown_cache(), offsets_by_16[(whole + 15) / 16], bytes);
}

/// Allocates a block whose bytes are all 0.
void* allocate_zeroed(std::size_t bytes) noexcept;

/// Resizes a block to at least `bytes` bytes. The block may move, with its contents. If there is no
/// memory, returns null and leaves the block unchanged.
void* reallocate(void* block, std::size_t bytes) noexcept;

/// Returns how many bytes of a block the program may use. Stops the process if `block` is not a
/// block, with a message that names the function `call`.
std::size_t usable_bytes(const void* block, const char* call) noexcept;

/// Frees a block whose size may differ from `bytes`. Stops the process if `bytes` cannot be the
/// size with which the block was allocated.
[[gnu::noinline]] void deallocate_doubtful(void* block, std::size_t bytes) noexcept;

/// Frees a block that was allocated with a size of `bytes`, according to the caller.
///
/// The slice map contains the class of the block, so an incorrect size cannot put a block onto the
/// wrong free list. This function stops the process if a large block is freed with a small size, or
/// a small block with a large size. It usually accepts an incorrect small size for a small block,
/// since programs with a missing virtual destructor pass such sizes. Must not be called for blocks
/// with an alignment above 16, because these may be larger than the caller requested.
[[gnu::always_inline]] inline void deallocate_sized(void* block, std::size_t bytes) noexcept
{
    thread_cache* const cache = shown_to_free();
    std::size_t const slice = reservations[0].slice_of(block);
    if (!reservations[0].has(slice) || bytes >= slice_bytes) [[unlikely]]
        return deallocate_doubtful(block, bytes);
    class_offset const offset = reservations[0].entry_at(slice) ^ cache->tag;
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
