// Free blocks of one size, the one freed last on top: `reuse::lifo`.
#pragma once

#include <mallard/annotate.hpp>
#include <mallard/source.hpp>

#include <span>
#include <utility>

namespace mallard {

/// A list through the free blocks themselves. Costs no memory and the fewest
/// instructions; but a pop reads the block, and misses when it has gone cold.
template <bool Watched>
class free_list {
public:
    constexpr free_list() noexcept = default;
    constexpr free_list(free_list&& other) noexcept : head_(std::exchange(other.head_, nullptr)) {}
    constexpr free_list& operator=(free_list&& other) noexcept
    {
        head_ = std::exchange(other.head_, nullptr);
        return *this;
    }

    /// Needs no memory of its own, unlike a magazine.
    static constexpr bool has_memory() noexcept { return true; }
    static constexpr chunk memory() noexcept { return {}; }
    bool empty() const noexcept { return head_ == nullptr; }

    /// Not when empty.
    void* pop() noexcept
    {
        unwatched<Watched> const reading_free_memory;
        void* const block = head_;
        head_ = next_of(block);
        return block;
    }

    void push(void* block) noexcept
    {
        unwatched<Watched> const writing_free_memory;
        set_next(block, head_);
        head_ = block;
    }

    /// The last of `blocks` comes on top.
    void load(std::span<void* const> blocks) noexcept
    {
        for (void* const block : blocks)
            push(block);
    }

    void clear() noexcept { head_ = nullptr; }

    template <class F>
    void for_each(F f) const
    {
        unwatched<Watched> const reading_free_memory;
        for (void* block = head_; block != nullptr; block = next_of(block))
            f(block);
    }

    /// Whether `p` is one of them; O(free blocks).
    bool has(const void* p) const noexcept
    {
        bool found = false;
        for_each([&](const void* block) { found = found || block == p; });
        return found;
    }

    /// Takes out the blocks that are `wanted(block)`, whose order stays.
    template <class Test>
    free_list split(Test wanted) noexcept
    {
        free_list turned = std::move(*this), out;
        turned.turn();
        while (!turned.empty()) {
            void* const block = turned.pop();
            (wanted(block) ? out : *this).push(block);
        }
        return out;
    }

private:
    void turn() noexcept
    {
        free_list all = std::move(*this);
        while (!all.empty())
            push(all.pop());
    }

    // Free blocks are poisoned, and these two are the only ones who may look.
    [[gnu::no_sanitize_address]] static void* next_of(const void* block) noexcept
    {
        return *static_cast<void* const*>(block);
    }
    [[gnu::no_sanitize_address]] static void set_next(void* block, void* next) noexcept
    {
        *static_cast<void**>(block) = next;
    }

    void* head_ = nullptr;
};

} // namespace mallard
