// A pool inside a segment of shared memory.
#pragma once

#include <mallard/detail/pool/chunk_layout.hpp>
#include <mallard/detail/threads/tagged_stack.hpp>
#include <mallard/persist/offset_ptr.hpp>
#include <mallard/persist/shared_memory.hpp>

#include <concepts>

namespace mallard {

/// A pool of blocks of one size, shared by all processes that map a segment. Any process may free a
/// block that another process allocated.
///
///     struct board {
///         explicit board(mallard::shared_memory& segment) : messages(segment, 1000) {}
///         mallard::segment_pool<sizeof(message)> messages;
///     };
///     auto* const b = segment.root<board>(segment);
///     void* const block = b->messages.allocate();
///     std::uint32_t const number = b->messages.number_of(block); // for any process
///
/// The capacity is fixed. The constructor allocates all blocks from the segment, and 4 bytes more
/// for each. It throws `std::bad_alloc` when the segment has too little memory. Blocks that were
/// never allocated are not touched. The pool must be in the segment, as a member of the root or in
/// a block. The pool is neither copied nor moved, and its memory is never returned to the segment.
///
/// `allocate` throws `std::bad_alloc` when no block is free; `try_allocate` returns null. If a
/// program frees a block that is not in use, or an address that is not a block, all processes would
/// suffer. So the calling process is stopped before the pool changes. Free blocks are not poisoned
/// for AddressSanitizer, whose shadow memory belongs to one process.
///
/// Any thread of any process may call any function at any time. No call waits, so a process that is
/// stopped or killed inside a call delays no other process. The blocks of a killed process stay in
/// use; `for_each` finds these blocks. If a process is killed inside calls, at most one block for
/// each of its threads is lost.
template <std::size_t Block, std::size_t Align = 0>
class segment_pool {
    static constexpr slot_shape shape = slot_shape::of(Block, Align, 1);

public:
    /// The type of a block number. The number of a block is the same in every process.
    using number = std::uint32_t;

    /// Allocates memory for `capacity` blocks from the segment.
    segment_pool(shared_memory& in, number capacity)
        // A link is a number + 1, and must not be equal to `in_use`.
        : capacity_(std::min(capacity, in_use - 1))
    {
        std::size_t const first = align_up(capacity_ * sizeof(std::atomic<number>), shape.align);
        std::size_t const bytes = saturating_mul(shape.bytes, capacity_);
        auto* const all = static_cast<std::byte*>(in.allocate(
            {saturating_add(first, bytes), std::max(shape.align, alignof(std::atomic<number>))}));
        links_ = reinterpret_cast<std::atomic<number>*>(all);
        blocks_ = all + first;
    }
    segment_pool(const segment_pool&) = delete;
    segment_pool& operator=(const segment_pool&) = delete;

    /// Allocates a block, or throws `std::bad_alloc`.
    [[nodiscard]] void* allocate()
    {
        if (void* const block = try_allocate()) [[likely]]
            return block;
        throw_bad_alloc();
    }
    /// Allocates a block, or returns null.
    [[nodiscard]] void* try_allocate() noexcept
    {
        if (void* const block = pop()) [[likely]]
            return block;
        return carve();
    }

    /// Frees a block that any process allocated.
    void deallocate(void* block) noexcept
    {
        std::size_t const offset = offset_of(block);
        std::size_t const slot = offset / shape.bytes;
        number link = in_use;
        if (offset >= carved() * shape.bytes || offset % shape.bytes != 0 ||
            !link_of(slot).compare_exchange_strong(link, 0, std::memory_order_relaxed)) [[unlikely]]
            fatal_bad_free(block, blocks_.get() + slot * shape.bytes, shape.bytes, slot < carved());
        stack_.push(slot, links());
    }

    /// Returns the number of a block. In any process, `at` converts the number back to an address.
    number number_of(const void* block) const noexcept
    {
        return static_cast<number>(offset_of(block) / shape.bytes);
    }
    /// Returns the address of a block in this process. `n` must be below `capacity()`; this is not
    /// checked.
    void* at(number n) const noexcept { return blocks_.get() + std::size_t{n} * shape.bytes; }

    /// Returns the number of all blocks, in use or free.
    number capacity() const noexcept { return capacity_; }
    /// Returns the size of each block.
    static constexpr std::size_t block_bytes() noexcept { return shape.bytes; }
    /// Returns the alignment of each block.
    static constexpr std::size_t block_align() noexcept { return shape.align; }

    /// Calls `f(void*)` for each block in use, in address order. `f` may free the block. A block
    /// that is allocated or freed during the call may be visited or not.
    template <std::invocable<void*> F>
    void for_each(F f)
    {
        for (std::size_t n = 0; n < carved(); ++n)
            if (link_of(n).load(std::memory_order_acquire) == in_use)
                f(at(static_cast<number>(n)));
    }

    /// Returns the statistics. They are as exact as the visits of `for_each`. O(capacity). If a
    /// block was lost because its process was killed inside a call, the block counts as idle.
    statistics stats() const noexcept
    {
        std::size_t live = 0;
        for (std::size_t n = 0; n < carved(); ++n)
            live += link_of(n).load(std::memory_order_relaxed) == in_use;
        return {.blocks_live = live,
                .bytes_live = live * shape.bytes,
                .bytes_idle = (capacity_ - live) * shape.bytes,
                .bytes_taken = capacity_ * (shape.bytes + sizeof(number)),
                .chunks = 1,
                .growths = 1};
    }

private:
    static constexpr number in_use = tagged_stack::in_use;

    std::size_t carved() const noexcept { return carved_.load(std::memory_order_relaxed); }

    std::atomic<number>& link_of(std::size_t slot) const noexcept { return links_.get()[slot]; }

    std::size_t offset_of(const void* p) const noexcept
    {
        return reinterpret_cast<std::uintptr_t>(p) -
               reinterpret_cast<std::uintptr_t>(blocks_.get());
    }

    auto links() const noexcept
    {
        return [this](std::size_t slot) -> std::atomic<number>& { return link_of(slot); };
    }

    void* pop() noexcept
    {
        return stack_.pop(links(), [this](number n) { return at(n); });
    }

    /// Allocates a block that was never allocated before, or returns null when no block is free.
    MALLARD_COLD void* carve() noexcept
    {
        number next = carved_.load(std::memory_order_relaxed);
        while (next < capacity_) {
            if (carved_.compare_exchange_weak(next, next + 1, std::memory_order_relaxed)) {
                link_of(next).store(in_use, std::memory_order_relaxed);
                return at(next);
            }
        }
        return pop(); // another thread may have freed a block since the first `pop`
    }

    // These numbers agree whenever no process is inside a call:
    //   in use + |stack| + |lost with killed processes| + |never allocated|  ==  capacity
    offset_ptr<std::byte> blocks_;
    // A link is `in_use`, or the number + 1 of the next block in the stack.
    offset_ptr<std::atomic<number>> links_;
    number capacity_;
    alignas(cache_line_bytes) tagged_stack stack_;
    alignas(cache_line_bytes) std::atomic<number> carved_{0};
};

} // namespace mallard
