// Free blocks of one size, in an array: the front of `reuse::ordered`.
#pragma once

#include <mallard/bits.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace mallard {

/// A stack of pointers beside the blocks, so that neither push nor pop reads or
/// writes a free block. The name is Bonwick's ("Magazines and Vmem", 2001).
class magazine {
public:
    constexpr magazine() noexcept = default;
    constexpr magazine(magazine&& other) noexcept
        : low_(std::exchange(other.low_, nullptr)), top_(std::exchange(other.top_, nullptr)),
          high_(std::exchange(other.high_, nullptr))
    {
    }
    constexpr magazine& operator=(magazine&& other) noexcept
    {
        low_ = std::exchange(other.low_, nullptr);
        top_ = std::exchange(other.top_, nullptr);
        high_ = std::exchange(other.high_, nullptr);
        return *this;
    }

    bool has_memory() const noexcept { return low_ != nullptr; }
    bool empty() const noexcept { return top_ == low_; }
    bool full() const noexcept { return top_ == high_; }

    /// Not when empty.
    void* pop() noexcept { return *--top_; }

    /// Not when full.
    void push(void* block) noexcept { *top_++ = block; }

    /// The last of `blocks` comes on top; they may stand in the array itself.
    void load(std::span<void* const> blocks) noexcept
    {
        top_ = blocks.data() == low_ ? low_ + blocks.size()
                                     : std::copy(blocks.begin(), blocks.end(), low_);
    }

    void clear() noexcept { top_ = low_; }

    /// Forgets the oldest `count`.
    void drop_oldest(std::size_t count) noexcept { top_ = std::move(low_ + count, top_, low_); }

    /// Moves what it holds into a larger array, which the caller owns.
    void move_to(void** array, std::size_t capacity) noexcept
    {
        top_ = std::copy(low_, top_, array);
        low_ = array;
        high_ = array + capacity;
    }

    /// Oldest first.
    std::span<void*> blocks() const noexcept { return {low_, top_}; }
    void** array() const noexcept { return low_; }
    std::size_t capacity() const noexcept { return static_cast<std::size_t>(high_ - low_); }

    template <class F>
    void for_each(F f) const
    {
        std::for_each(low_, top_, f);
    }

private:
    // low <= top <= high. A magazine without an array is empty and full at once:
    // all three null.
    void** low_ = nullptr;
    void** top_ = nullptr;
    void** high_ = nullptr;
};

} // namespace mallard
