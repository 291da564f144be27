// Free blocks of one size, linked through the blocks themselves, for `reuse::lifo` and
// `reuse::fifo`.
#pragma once

#include <mallard/detail/base/annotate.hpp>
#include <mallard/detail/base/chunk_source.hpp>

#include <span>
#include <utility>

namespace mallard {

/// The start of a list that is a stack, in which a freed block becomes the first.
struct stack_top {
    void* first = nullptr;

    static constexpr void made_for(std::size_t) noexcept {}
    constexpr void clear() noexcept { first = nullptr; }
    void** place() noexcept { return &first; }
    static constexpr void pushed(void*) noexcept {}
    static constexpr void popped(const void*) noexcept {}
};

/// The start of a list whose first blocks are a queue. A freed block is inserted after the queue
/// and before all other blocks. Unless the queue is full, the block becomes part of it. So blocks
/// that were freed in address order are allocated in address order. A program's linked list then
/// keeps the order of memory while its nodes are freed and allocated again. A stack would reverse
/// each sequence, and soon no two neighbours of the linked list would be neighbours in memory
/// (docs/decisions/0027). The queue has at most 64 blocks, and at most a page of bytes, so that
/// blocks that are alternately freed and allocated stay in the processor's cache.
struct queue_top {
    static constexpr std::size_t blocks_max = 64;

    void* first = nullptr;
    void** behind = &first; // where the queue ends: the link of its last block, or `first`
    std::uint32_t room = 0; // free places in the queue; `most` when the queue is empty
    std::uint32_t most = 0;

    constexpr queue_top() noexcept = default;
    constexpr queue_top(const queue_top& other) noexcept { take(other); }
    constexpr queue_top& operator=(const queue_top& other) noexcept
    {
        if (this != &other)
            take(other);
        return *this;
    }
    /// Moves all blocks of `other` to this list. The queue of this list is then empty, and starts
    /// before these blocks.
    constexpr void take(const queue_top& other) noexcept
    {
        most = other.most;
        clear();
        first = other.first;
    }

    constexpr void made_for(std::size_t block_bytes) noexcept
    {
        room = most = static_cast<std::uint32_t>(std::min(page_bytes / block_bytes, blocks_max));
    }
    constexpr void clear() noexcept
    {
        first = nullptr;
        behind = &first;
        room = most;
    }
    void** place() noexcept { return behind; }
    void pushed(void* block) noexcept
    {
        if (room == 0)
            return;
        room -= 1;
        behind = static_cast<void**>(block);
    }
    void popped(const void* block) noexcept
    {
        room += room < most;
        if (behind == block)
            behind = &first;
    }
};

/// A list of free blocks. The list needs no memory apart from the blocks, and fewer instructions
/// than a magazine. But a pop reads the block, which is a cache miss if the block was not used for
/// a long time.
template <bool ChecksOn, class Top = stack_top>
class free_list {
public:
    constexpr free_list() noexcept = default;
    constexpr free_list(free_list&& other) noexcept : top_(other.top_) { other.clear(); }
    constexpr free_list& operator=(free_list&& other) noexcept
    {
        top_ = other.top_;
        other.clear();
        return *this;
    }
    constexpr void made_for(std::size_t block_bytes) noexcept { top_.made_for(block_bytes); }

    /// Returns null, because unlike a magazine, a list needs no memory apart from its blocks.
    static constexpr chunk memory() noexcept { return {}; }
    bool empty() const noexcept { return top_.first == nullptr; }

    /// Removes and returns the first block. The list must not be empty.
    void* pop() noexcept
    {
        no_valgrind_reports<ChecksOn> const reading_free_memory;
        void* const block = top_.first;
        top_.first = next_of(block);
        top_.popped(block);
        return block;
    }

    void push(void* block) noexcept
    {
        no_valgrind_reports<ChecksOn> const writing_free_memory;
        void** const place = top_.place();
        set_next(block, next_of(place));
        set_next(place, block);
        top_.pushed(block);
    }

    /// Pushes all of `blocks`, starting with the first.
    void load(std::span<void* const> blocks) noexcept
    {
        for (void* const block : blocks)
            push(block);
    }

    constexpr void clear() noexcept { top_.clear(); }

    template <class F>
    void for_each(F f) const
    {
        no_valgrind_reports<ChecksOn> const reading_free_memory;
        for (void* block = top_.first; block != nullptr; block = next_of(block))
            f(block);
    }

    /// Returns whether `p` is one of the blocks. O(free blocks).
    bool has(const void* p) const noexcept
    {
        bool found = false;
        for_each([&](const void* block) { found = found || block == p; });
        return found;
    }

private:
    // Free blocks are poisoned for AddressSanitizer. Only `next_of` and `set_next` may access them.
    [[gnu::no_sanitize_address]] static void* next_of(const void* block) noexcept
    {
        return *static_cast<void* const*>(block);
    }
    [[gnu::no_sanitize_address]] static void set_next(void* block, void* next) noexcept
    {
        *static_cast<void**>(block) = next;
    }

    Top top_;
};

} // namespace mallard
