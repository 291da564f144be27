// A pool that lies wholly in a segment of shared memory.
#pragma once

#include <mallard/detail/pool/slot_shape.hpp>
#include <mallard/persist/offset_ptr.hpp>
#include <mallard/persist/shared_memory.hpp>

#include <concepts>

namespace mallard {

/// Gives blocks of one size to all processes that have the segment, and takes them back from
/// any of them.
///
///     struct board {
///         explicit board(mallard::shared_memory& segment) : messages(segment, 1000) {}
///         mallard::segment_pool<sizeof(message)> messages;
///     };
///     auto* const b = segment.root<board>(segment);
///     void* const block = b->messages.allocate();
///     std::uint32_t const number = b->messages.number_of(block); // for any process
///
/// Room for a fixed count, taken from the segment by the constructor, which throws
/// `std::bad_alloc` when that has not enough; 4 bytes a block beside it. What was never given
/// out is not touched. The pool is an object of the segment itself, as part of the root or
/// in a block; it is neither copied nor moved, and what it took stays taken.
///
/// `allocate` throws `std::bad_alloc` when no block is free, `try_allocate` gives null. A
/// block that is not in use, or no block, stops the calling process at `deallocate`, before
/// the pool is changed: a double free would harm all others. AddressSanitizer is told
/// nothing, since what it knows of the segment is each process's own.
///
/// Any thread of any process may call anything at any time, and waits for nobody: a process
/// that is stopped or killed inside a call holds nobody up. Killed, it takes along the
/// blocks that it had, and the one in its hands if it was inside a call; at most one a
/// thread. `for_each` finds those that it had.
template <std::size_t Block, std::size_t Align = 0>
class segment_pool {
    static constexpr slot_shape shape = slot_shape::of(Block, Align, 1);

public:
    /// Of a block. The same in every process.
    using number = std::uint32_t;

    segment_pool(shared_memory& in, number capacity)
        : capacity_(std::min(capacity, in_use - 1)) // links are a number + 1, or `in_use`
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

    [[nodiscard]] void* allocate()
    {
        if (void* const block = try_allocate()) [[likely]]
            return block;
        throw_bad_alloc();
    }
    [[nodiscard]] void* try_allocate() noexcept
    {
        std::uint64_t taken = pop();
        if (taken == 0) [[unlikely]]
            taken = carve();
        if (taken == 0) [[unlikely]]
            return nullptr;
        auto const n = static_cast<number>(taken - 1);
        link_of(n).store(in_use, std::memory_order_relaxed);
        return at(n);
    }

    void deallocate(void* block) noexcept
    {
        std::size_t const offset = offset_of(block);
        std::size_t const slot = offset / shape.bytes;
        number link = in_use;
        if (offset >= carved() * shape.bytes || offset % shape.bytes != 0 ||
            !link_of(slot).compare_exchange_strong(link, 0, std::memory_order_relaxed)) [[unlikely]]
            fatal_bad_free(block, blocks_.get() + slot * shape.bytes, shape.bytes, slot < carved());
        push(slot);
    }

    /// For `at`, there or in another process.
    number number_of(const void* block) const noexcept
    {
        return static_cast<number>(offset_of(block) / shape.bytes);
    }
    /// Where a block is in this process; below `capacity()`, and nothing else is checked.
    void* at(number n) const noexcept { return blocks_.get() + std::size_t{n} * shape.bytes; }

    number capacity() const noexcept { return capacity_; }
    static constexpr std::size_t block_bytes() noexcept { return shape.bytes; }
    static constexpr std::size_t block_align() noexcept { return shape.align; }

    /// Calls `f(void*)` for each block in use, in address order; `f` may free it. Exact for
    /// those that nobody takes or frees meanwhile.
    template <std::invocable<void*> F>
    void for_each(F f)
    {
        for (std::size_t n = 0; n < carved(); ++n)
            if (link_of(n).load(std::memory_order_acquire) == in_use)
                f(at(static_cast<number>(n)));
    }

    /// O(capacity); as exact as `for_each`. What was lost with a process counts as idle.
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
    static constexpr number in_use = ~number{0};
    static constexpr std::uint64_t one_tag = std::uint64_t{1} << 32;

    std::size_t carved() const noexcept { return carved_.load(std::memory_order_relaxed); }

    std::atomic<number>& link_of(std::size_t slot) const noexcept { return links_.get()[slot]; }

    std::size_t offset_of(const void* p) const noexcept
    {
        return reinterpret_cast<std::uintptr_t>(p) -
               reinterpret_cast<std::uintptr_t>(blocks_.get());
    }

    // --- as in lock_free_core: a word {tag, number of the top + 1}, where 0 is "empty".
    // The link of a block in hand may be anything: who read it has a head whose tag is gone.
    std::uint64_t pop() noexcept
    {
        std::uint64_t head = head_.load(std::memory_order_acquire);
        while (static_cast<number>(head) != 0) {
            std::uint64_t const next =
                link_of(static_cast<number>(head) - 1).load(std::memory_order_relaxed);
            std::uint64_t const after = ((head + one_tag) & ~(one_tag - 1)) | next;
            if (head_.compare_exchange_weak(head, after, std::memory_order_acquire))
                return static_cast<number>(head);
        }
        return 0;
    }

    void push(std::size_t slot) noexcept
    {
        std::uint64_t head = head_.load(std::memory_order_relaxed);
        do
            link_of(slot).store(static_cast<number>(head), std::memory_order_relaxed);
        while (!head_.compare_exchange_weak(head, (head & ~(one_tag - 1)) | (slot + 1),
                                            std::memory_order_release, std::memory_order_relaxed));
    }

    /// The number of a block that was never given out, + 1; 0 when none is free.
    MALLARD_COLD std::uint64_t carve() noexcept
    {
        number next = carved_.load(std::memory_order_relaxed);
        while (next < capacity_)
            if (carved_.compare_exchange_weak(next, next + 1, std::memory_order_relaxed))
                return next + std::uint64_t{1};
        return pop(); // one may have come back since, and from here on there is nothing else
    }

    // Between any two calls, while no process is inside one:
    //   in use + |stack| + |lost with killed processes| + |not carved|  ==  capacity
    offset_ptr<std::byte> blocks_;
    offset_ptr<std::atomic<number>> links_; // `in_use`, or what is below it in the stack, + 1
    number capacity_;
    alignas(cache_line_bytes) std::atomic<std::uint64_t> head_{0};
    alignas(cache_line_bytes) std::atomic<number> carved_{0};
};

} // namespace mallard
