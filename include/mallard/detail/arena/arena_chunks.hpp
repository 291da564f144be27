// The chunks of an arena: those in use, newest first, and those that are idle.
#pragma once

#include <mallard/detail/base/event_count.hpp>
#include <mallard/source.hpp>

namespace mallard {

/// Stands behind the blocks, so that the first of them is aligned as the chunk is.
struct arena_chunk {
    static constexpr std::size_t align = 16;

    arena_chunk* next;
    chunk taken;

    std::byte* begin() const noexcept { return static_cast<std::byte*>(taken.data); }
    std::byte* end() noexcept { return reinterpret_cast<std::byte*>(this); }
    std::size_t bytes() noexcept { return static_cast<std::size_t>(end() - begin()); }

    /// Where `l` would start, or null when it does not fit.
    std::byte* place(layout l) noexcept
    {
        std::byte* const p = align_up(begin(), l.align);
        return p < end() && l.bytes <= static_cast<std::size_t>(end() - p) ? p : nullptr;
    }

    /// Bytes of a chunk that has room for one block of so many bytes.
    static constexpr std::size_t bytes_for(std::size_t block) noexcept
    {
        return saturating_add(block, align - 1 + sizeof(arena_chunk)) & ~(align - 1);
    }

    static arena_chunk* make(chunk taken) noexcept
    {
        std::size_t const offset = (taken.bytes & ~(align - 1)) - sizeof(arena_chunk);
        return ::new (static_cast<std::byte*>(taken.data) + offset) arena_chunk{nullptr, taken};
    }
};
static_assert(sizeof(arena_chunk) % arena_chunk::align == 0);

class arena_chunks {
public:
    constexpr arena_chunks() noexcept = default;
    constexpr arena_chunks(arena_chunks&& other) noexcept
        : used_(std::exchange(other.used_, nullptr)),
          oldest_used_(std::exchange(other.oldest_used_, nullptr)),
          idle_(std::exchange(other.idle_, nullptr)), uses_(std::move(other.uses_))
    {
    }

    arena_chunk* used() const noexcept { return used_; }
    arena_chunk* idle() const noexcept { return idle_; }

    /// How often a chunk came into use.
    std::size_t uses() const noexcept { return uses_; }

    void use(arena_chunk* c) noexcept
    {
        if (used_ == nullptr)
            oldest_used_ = c;
        ++uses_;
        c->next = std::exchange(used_, c);
    }

    /// Takes out the newest idle chunk where `l` fits; null when none does.
    arena_chunk* take_idle(layout l) noexcept
    {
        for (arena_chunk** link = &idle_; *link != nullptr; link = &(*link)->next)
            if ((*link)->place(l) != nullptr)
                return std::exchange(*link, (*link)->next);
        return nullptr;
    }

    /// Those newer than `last` become idle.
    void retire_until(arena_chunk* last) noexcept
    {
        if (used_ == last)
            return;
        arena_chunk* oldest = used_;
        while (oldest->next != last)
            oldest = oldest->next;
        oldest->next = std::exchange(idle_, std::exchange(used_, last));
    }

    /// All become idle, in constant time.
    void retire_all() noexcept
    {
        if (used_ != nullptr)
            oldest_used_->next = std::exchange(idle_, std::exchange(used_, nullptr));
    }

    /// Cuts off the idle chunks beyond `keep` bytes, oldest first, as a list.
    arena_chunk* cut_idle(std::size_t keep) noexcept
    {
        arena_chunk** last = &idle_;
        for (; *last != nullptr && (*last)->taken.bytes <= keep; last = &(*last)->next)
            keep -= (*last)->taken.bytes;
        return std::exchange(*last, nullptr);
    }

    /// Cuts off all that are in use, as a list.
    arena_chunk* cut_used() noexcept { return std::exchange(used_, nullptr); }

    bool owns(const void* p) const noexcept
    {
        for (const arena_chunk* const list : {used_, idle_})
            for (const arena_chunk* c = list; c != nullptr; c = c->next)
                if (c->taken.data <= p && p < c)
                    return true;
        return false;
    }

    bool is_used(const arena_chunk* wanted) const noexcept
    {
        const arena_chunk* c = used_;
        while (c != wanted && c != nullptr)
            c = c->next;
        return c == wanted;
    }

private:
    // Every chunk is in one of two lists, newest first. The last of `used_` is
    // `oldest_used_`, for as long as there is one.
    arena_chunk* used_ = nullptr;
    arena_chunk* oldest_used_ = nullptr;
    arena_chunk* idle_ = nullptr;
    event_count uses_;
};

/// Tells marks from those that the last rewind has passed, by their numbers.
template <bool Watched>
class mark_numbers {
public:
    std::size_t next() noexcept { return ++last_; }

    constexpr void rewound_to(std::size_t number) noexcept
    {
        if (number == last_)
            return; // it passed none
        valid_ = number;
        passed_ = last_;
    }
    bool is_stale(std::size_t number) const noexcept
    {
        return valid_ < number && number <= passed_;
    }

private:
    std::size_t last_ = 0;
    std::size_t valid_ = 0;
    std::size_t passed_ = 0;
};

/// Without checks there are none.
template <>
class mark_numbers<false> {
public:
    static constexpr std::size_t next() noexcept { return 0; }
    static constexpr void rewound_to(std::size_t) noexcept {}
    static constexpr bool is_stale(std::size_t) noexcept { return false; }
};

} // namespace mallard
