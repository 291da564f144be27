// Free blocks of one size, in an array: the front of `reuse::ordered`.
#pragma once

#include <mallard/source.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace mallard {

/// A stack of pointers beside the blocks, so that neither push nor pop reads or
/// writes a free block. The name is Bonwick's ("Magazines and Vmem", 2001). `Top` is
/// where it ends: a `void**`, or what can be assigned one.
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

    /// Not when empty.
    void* pop() noexcept
    {
        set_top(top() - 1);
        return *top_;
    }

    /// Not when full.
    void push(void* block) noexcept
    {
        *top_ = block;
        set_top(top() + 1);
    }

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
        top_ = std::move(array() + count, top(), array());
    }

    /// Moves what it holds into a larger array of `entries`, at the front of
    /// `memory`. Gives the memory it leaves, which is the caller's again.
    chunk move_to(chunk memory, std::size_t entries) noexcept
    {
        auto** const larger = static_cast<void**>(memory.data);
        top_ = std::copy(array(), top(), larger);
        high_ = larger + entries;
        return std::exchange(memory_, memory);
    }
    chunk memory() const noexcept { return memory_; }

    /// Oldest first.
    std::span<void*> blocks() const noexcept { return {array(), top()}; }
    void** array() const noexcept { return static_cast<void**>(memory_.data); }
    std::size_t capacity() const noexcept { return static_cast<std::size_t>(high_ - array()); }

    template <class F>
    void for_each(F f) const
    {
        std::for_each(array(), top(), f);
    }

    /// Whether `p` is one of them; O(blocks).
    bool has(const void* p) const noexcept { return std::find(array(), top(), p) != top(); }

protected:
    void** top() const noexcept { return top_; }
    constexpr void set_top(void** to) noexcept { top_ = to; }

private:
    // array() <= top <= high. A magazine without memory is empty and full at once:
    // all three null.
    Top top_{nullptr};
    void** high_ = nullptr;
    chunk memory_;
    bool reloaded_ = false;
};

using magazine = basic_magazine<void**>;

} // namespace mallard
