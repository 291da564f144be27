// A lock-free stack of block indices, for pools that never wait.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

#include <atomic>
#include <cstdint>

namespace mallard {

/// A stack of indices in one word, {tag, 1 + index of the top}, after R. K. Treiber ("Systems
/// Programming: Coping with Parallelism", 1986). The links between the indices are in an array of
/// the caller. The link `link_of(i)` is an atomic 32-bit word, which holds 1 + the index below `i`
/// in the stack, or `in_use` while `i` is not in the stack.
///
/// A thread may read the link of an index that another thread has just popped. The compare-exchange
/// of the reading thread then fails. Each pop adds 1 to the tag, so the head differs even if the
/// same index is on top again (ABA). The tag wraps after 2^32 pops. So the stack would be corrupted
/// if a thread were suspended between its read of the head and its compare-exchange for exactly
/// 2^32 pops, and the same index were then on top. tests/models/stack.pml verifies pop and push.
class tagged_stack {
public:
    using index = std::uint32_t;
    static constexpr index in_use = ~index{0};

    /// Pops the top index, marks the index as in use and returns `result(index)`, a pointer.
    /// Returns null if the stack is empty.
    template <class LinkOf, class Result>
    [[gnu::always_inline]] auto pop(LinkOf link_of, Result result) noexcept
    {
        std::uint64_t head = head_.load(std::memory_order_acquire);
        while (static_cast<index>(head) != 0) {
            index const top = static_cast<index>(head) - 1;
            std::uint64_t const next = link_of(top).load(std::memory_order_relaxed);
            std::uint64_t const after = ((head + one_tag) & ~(one_tag - 1)) | next;
            if (head_.compare_exchange_weak(head, after, std::memory_order_acquire)) {
                link_of(top).store(in_use, std::memory_order_relaxed);
                return result(top);
            }
        }
        return decltype(result(index{}))(nullptr);
    }

    template <class LinkOf>
    [[gnu::always_inline]] void push(std::size_t i, LinkOf link_of) noexcept
    {
        std::uint64_t head = head_.load(std::memory_order_relaxed);
        do
            link_of(i).store(static_cast<index>(head), std::memory_order_relaxed);
        while (!head_.compare_exchange_weak(head, (head & ~(one_tag - 1)) | (i + std::uint64_t{1}),
                                            std::memory_order_release, std::memory_order_relaxed));
    }

    /// Empties the stack. No other thread may use the stack during the call.
    void clear() noexcept
    {
        head_.store(head_.load(std::memory_order_relaxed) & ~(one_tag - 1),
                    std::memory_order_relaxed);
    }

private:
    static constexpr std::uint64_t one_tag = std::uint64_t{1} << 32;

    std::atomic<std::uint64_t> head_{0};
};

} // namespace mallard
