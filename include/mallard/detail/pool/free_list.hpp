// Free blocks of one size, in a list through themselves: `reuse::lifo`, `reuse::fifo`.
#pragma once

#include <mallard/detail/base/annotate.hpp>
#include <mallard/detail/pool/slot_shape.hpp>
#include <mallard/source.hpp>

#include <span>
#include <utility>

namespace mallard {

/// A list whose new blocks come first.
struct stack_top {
    void* first = nullptr;

    static constexpr void made_for(slot_shape) noexcept {}
    constexpr void clear() noexcept { first = nullptr; }
    void** place() noexcept { return &first; }
    static constexpr void pushed(void*) noexcept {}
    static constexpr void popped(const void*) noexcept {}
};

/// A list that begins with a queue: a new block comes behind it, in front of all others, and
/// is of the queue if there is room. What is freed in the order of addresses is then given out
/// in that order, and lists whose nodes come and go stay in it; a stack turns each stretch
/// around, and soon no two neighbours are neighbours: docs/decisions/0027. The queue is of 64
/// blocks, and of a page at most, so that what is freed and taken in turn stays in the cache.
struct queue_top {
    static constexpr std::size_t blocks_max = 64;

    void* first = nullptr;
    void** behind = &first; // the queue: the link of its last block, to what is behind
    std::uint32_t room = 0; // in the queue: `most` when it is empty
    std::uint32_t most = 0;

    constexpr queue_top() noexcept = default;
    constexpr queue_top(const queue_top& other) noexcept { take(other); }
    constexpr queue_top& operator=(const queue_top& other) noexcept
    {
        if (this != &other)
            take(other);
        return *this;
    }
    /// All of them behind the queue.
    constexpr void take(const queue_top& other) noexcept
    {
        most = other.most;
        clear();
        first = other.first;
    }

    constexpr void made_for(slot_shape shape) noexcept
    {
        room = most = static_cast<std::uint32_t>(std::min(page_bytes / shape.bytes, blocks_max));
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

/// Costs no memory and the fewest instructions; but a pop reads the block, and misses when
/// it has gone cold.
template <bool Watched, class Top = stack_top>
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
    constexpr void made_for(slot_shape shape) noexcept { top_.made_for(shape); }

    /// Needs no memory of its own, unlike a magazine.
    static constexpr bool has_memory() noexcept { return true; }
    static constexpr chunk memory() noexcept { return {}; }
    bool empty() const noexcept { return top_.first == nullptr; }

    /// Not when empty.
    void* pop() noexcept
    {
        unwatched<Watched> const reading_free_memory;
        void* const block = top_.first;
        top_.first = next_of(block);
        top_.popped(block);
        return block;
    }

    void push(void* block) noexcept
    {
        unwatched<Watched> const writing_free_memory;
        void** const place = top_.place();
        set_next(block, next_of(place));
        set_next(place, block);
        top_.pushed(block);
    }

    /// The last of `blocks` comes on top.
    void load(std::span<void* const> blocks) noexcept
    {
        for (void* const block : blocks)
            push(block);
    }

    constexpr void clear() noexcept { top_.clear(); }

    template <class F>
    void for_each(F f) const
    {
        unwatched<Watched> const reading_free_memory;
        for (void* block = top_.first; block != nullptr; block = next_of(block))
            f(block);
    }

    /// Whether `p` is one of them; O(free blocks).
    bool has(const void* p) const noexcept
    {
        bool found = false;
        for_each([&](const void* block) { found = found || block == p; });
        return found;
    }

    /// Takes out the blocks that are `wanted(block)`. The order of both stays.
    template <class Test>
    free_list split(Test wanted) noexcept
    {
        unwatched<Watched> const reading_and_writing_free_memory;
        free_list out;
        void* link = &top_.first;
        void* out_link = &out.top_.first;
        while (void* const block = next_of(link)) {
            if (!wanted(block)) {
                link = block;
                continue;
            }
            set_next(link, next_of(block));
            set_next(out_link, block);
            out_link = block;
        }
        set_next(out_link, nullptr);
        top_ = Top(top_); // no queue: its last block may be gone
        return out;
    }

private:
    // Free blocks are poisoned, and these two are the only ones who may look.
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
