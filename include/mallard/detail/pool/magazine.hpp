// Free blocks of one size in an array, which is the cache for `reuse::ordered`.
#pragma once

#include <mallard/detail/base/chunk_source.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace mallard {

/// An array of pointers to free blocks, used as a stack. Neither a push nor a pop reads or writes a
/// free block. The name comes from Bonwick ("Magazines and Vmem", 2001). `Top` is the type of the
/// pointer to the end of the stack. It is `void**`, or a type that converts from and to `void**`.
template <class Top>
class basic_magazine {
public:
    constexpr basic_magazine() noexcept = default;
    constexpr basic_magazine(basic_magazine&& other) noexcept
        : top_(std::exchange(other.top_, nullptr)), high_(std::exchange(other.high_, nullptr)),
          memory_(std::exchange(other.memory_, {})),
          reloaded_(std::exchange(other.reloaded_, false))
    {
    }
    constexpr basic_magazine& operator=(basic_magazine&& other) noexcept
    {
        set_top(std::exchange(other.top_, nullptr));
        high_ = std::exchange(other.high_, nullptr);
        memory_ = std::exchange(other.memory_, {});
        reloaded_ = std::exchange(other.reloaded_, false);
        return *this;
    }

    bool has_memory() const noexcept { return memory_.data != nullptr; }
    bool empty() const noexcept { return top_ == array(); }
    bool full() const noexcept { return top_ == high_; }

    /// Removes and returns the block that was pushed last. The magazine must not be empty.
    void* pop() noexcept
    {
        set_top(top() - 1);
        return *top_;
    }

    /// Adds a block. The magazine must not be full.
    void push(void* block) noexcept
    {
        *top_ = block;
        set_top(top() + 1);
    }

    /// Replaces the content by `blocks`, the last block on top. `blocks` may be part of the array
    /// itself.
    void load(std::span<void* const> blocks) noexcept
    {
        reloaded_ = true;
        top_ = blocks.data() == array() ? array() + blocks.size()
                                        : std::copy(blocks.begin(), blocks.end(), array());
    }

    /// Returns whether `load` was called since the last call of this function.
    bool was_reloaded() noexcept { return std::exchange(reloaded_, false); }

    void clear() noexcept
    {
        top_ = array();
        reloaded_ = false;
    }

    /// Removes the oldest `count` blocks from the magazine.
    void drop_oldest(std::size_t count) noexcept
    {
        top_ = std::move(array() + count, top(), array());
    }

    /// Moves the blocks to a larger array of `entries`, at the start of `memory`. Returns the
    /// memory of the old array, which the caller has to free.
    chunk move_to(chunk memory, std::size_t entries) noexcept
    {
        auto** const larger = static_cast<void**>(memory.data);
        top_ = std::copy(array(), top(), larger);
        high_ = larger + entries;
        return std::exchange(memory_, memory);
    }
    chunk memory() const noexcept { return memory_; }

    /// Returns all blocks, the oldest first.
    std::span<void*> blocks() const noexcept { return {array(), top()}; }
    void** array() const noexcept { return static_cast<void**>(memory_.data); }
    std::size_t capacity() const noexcept { return static_cast<std::size_t>(high_ - array()); }

    void for_each(auto f) const { std::for_each(array(), top(), f); }

    /// Returns whether `p` is one of the blocks. O(blocks).
    bool has(const void* p) const noexcept { return std::find(array(), top(), p) != top(); }

protected:
    void** top() const noexcept { return top_; }
    constexpr void set_top(void** to) noexcept { top_ = to; }

private:
    // array() <= top_ <= high_. Without an array, all three are null. The magazine is then both
    // empty and full, so allocations and frees take their slow paths.
    Top top_{nullptr};
    void** high_ = nullptr;
    chunk memory_;
    bool reloaded_ = false;
};

using magazine = basic_magazine<void**>;

} // namespace mallard
