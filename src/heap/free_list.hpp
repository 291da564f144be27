// Free blocks, which store their links in their first bytes, and the free lists of a thread cache.
#pragma once

#include "classes.hpp"

#include <mallard/detail/base/atomic_ref.hpp>

#include <cstdint>

namespace mallard::engine {

/// The first two words of a free block. The second word is a pointer to the next block. The first
/// word is the same pointer XORed with a mark that depends on this block's address.
///
/// The mark is the address of the block XORed with a secret key of the process (`mark_for`). Every
/// pop compares the two words, so a stray write into a free block cannot choose the address that
/// malloc returns next. (snmalloc also signs links with a secret key. glibc's safe linking does
/// less: it stores the link only once, XORed with high bits of the address at which the link is
/// stored, and checks only that the link is aligned.) Allocation clears the first word, so an
/// allocated block does not look free.
///
/// A double free is detected at the latest when the block would be allocated a second time. The
/// second free itself detects the error only if the block is the newest of its list, or if this
/// free reads the block for another reason. Reading every freed block would make each free wait for
/// a cache line (docs/decisions/0018).
struct free_block {
    std::uint64_t guarded;
    void* next;
};

/// The free blocks of one size class that the thread can allocate without a lock, newest first.
///
/// Every operation changes `room` before it reads `head`. A visitor (a thread that scavenges the
/// free blocks of an idle thread) relies on that order, because while no operation is under way,
/// `room` plus the number of blocks equals `limit` (see visit.cpp). The comment on `deferred_frees`
/// explains what a negative `room` means.
struct free_list {
    void* head = nullptr;
    std::int32_t room = 0;            ///< number of blocks that the list can still accept
    std::uint16_t limit = 0;          ///< largest number of blocks that the list may hold
    std::uint16_t unaligned_bits = 0; ///< address bits that are 0 in every block; see class_shape
};
static_assert(sizeof(free_list) == class_offset_unit);

inline atomic_ref<void*> head_of(free_list& l) noexcept
{
    return atomic_ref(l.head);
}

/// Returns the first words of a block as a `free_block`. In an allocated block, these words contain
/// the caller's data.
inline free_block& as_free(void* block) noexcept
{
    return *static_cast<free_block*>(block);
}
inline std::uint64_t mark_for(const void* block, std::uint64_t key) noexcept
{
    return reinterpret_cast<std::uintptr_t>(block) ^ key;
}
inline void link(void* block, void* next, std::uint64_t mark) noexcept
{
    as_free(block) = {reinterpret_cast<std::uintptr_t>(next) ^ mark, next};
}
inline bool is_free(const void* block, std::uint64_t mark) noexcept
{
    auto const& b = *static_cast<const free_block*>(block);
    return (b.guarded ^ mark) == reinterpret_cast<std::uintptr_t>(b.next);
}
/// Clears the first word of a block that is about to be allocated, so that the block no longer
/// looks free.
inline void clear(void* block) noexcept
{
    as_free(block).guarded = 0;
}

[[noreturn, gnu::noinline]] void stop_at_damaged_list(const void* block) noexcept;

/// Returns the block that follows a free block in its list. Stops the process if the two words of
/// `block` do not match.
[[gnu::always_inline]] inline void* next_of(const void* block, std::uint64_t key) noexcept
{
    if (!is_free(block, mark_for(block, key))) [[unlikely]]
        stop_at_damaged_list(block);
    return static_cast<const free_block*>(block)->next;
}

} // namespace mallard::engine
