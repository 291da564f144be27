// Free blocks of one size, in an array: the front of `reuse::ordered`.
#pragma once

#include <mallard/source.hpp>

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
        : memory_(std::exchange(other.memory_, {})), top_(std::exchange(other.top_, nullptr)),
          high_(std::exchange(other.high_, nullptr)),
          reloaded_(std::exchange(other.reloaded_, false))
    {
    }
    constexpr magazine& operator=(magazine&& other) noexcept
    {
        memory_ = std::exchange(other.memory_, {});
        top_ = std::exchange(other.top_, nullptr);
        high_ = std::exchange(other.high_, nullptr);
        reloaded_ = std::exchange(other.reloaded_, false);
        return *this;
    }

    bool has_memory() const noexcept { return memory_.data != nullptr; }
    bool empty() const noexcept { return top_ == array(); }
    bool full() const noexcept { return top_ == high_; }

    /// Not when empty.
    void* pop() noexcept { return *--top_; }

    /// Not when full.
    void push(void* block) noexcept { *top_++ = block; }

    /// The last of `blocks` comes on top; they may stand in the array itself.
    void load(std::span<void* const> blocks) noexcept
    {
        reloaded_ = true;
        top_ = blocks.data() == array() ? array() + blocks.size()
                                        : std::copy(blocks.begin(), blocks.end(), array());
    }

    /// Whether anything was loaded since this was asked last.
    bool was_reloaded() noexcept { return std::exchange(reloaded_, false); }

    void clear() noexcept
    {
        top_ = array();
        reloaded_ = false;
    }

    /// Forgets the oldest `count`.
    void drop_oldest(std::size_t count) noexcept
    {
        top_ = std::move(array() + count, top_, array());
    }

    /// Moves what it holds into a larger array of `entries`, at the front of
    /// `memory`. Gives the memory it leaves, which is the caller's again.
    chunk move_to(chunk memory, std::size_t entries) noexcept
    {
        auto** const larger = static_cast<void**>(memory.data);
        top_ = std::copy(array(), top_, larger);
        high_ = larger + entries;
        return std::exchange(memory_, memory);
    }
    chunk memory() const noexcept { return memory_; }

    /// Oldest first.
    std::span<void*> blocks() const noexcept { return {array(), top_}; }
    void** array() const noexcept { return static_cast<void**>(memory_.data); }
    std::size_t capacity() const noexcept { return static_cast<std::size_t>(high_ - array()); }

    template <class F>
    void for_each(F f) const
    {
        std::for_each(array(), top_, f);
    }

private:
    // array() <= top <= high. A magazine without memory is empty and full at once:
    // all three null.
    chunk memory_;
    void** top_ = nullptr;
    void** high_ = nullptr;
    bool reloaded_ = false;
};

} // namespace mallard
