// Frees that a thread defers while it frees many blocks in a row.
#pragma once

#include "free_list.hpp"

#include <utility>

namespace mallard::engine {

/// The number of size classes for which frees may be deferred. These classes have blocks of up to 1
/// KiB. Deferring the frees of larger blocks would retain too much memory.
inline constexpr std::size_t deferred_class_count = block_class::of(1024) + 1;

/// The blocks whose free a thread has deferred, because their free lists were full or because the
/// blocks belong to other threads.
///
/// A program that frees a million blocks in random order waits for a cache miss at every block. If
/// `capacity` frees are deferred and each block is prefetched, these cache misses overlap. A
/// deferred block still counts as used in its slab.
///
/// The checks for a double free run when the deferred blocks are returned to their slabs. Until
/// then a block that was freed twice might be both deferred and in the free list of its class. So
/// the first deferred free of a class hides the free list, that is, the blocks of the list cannot
/// be allocated until the deferred blocks are returned. Each return of `capacity` deferred blocks
/// also returns as many blocks of a hidden list. Otherwise these blocks, which were freed earlier,
/// would prevent their slabs from becoming free.
///
/// A deferred block of another thread hides no list, because the lists have only blocks of this
/// cache's own slabs. The value of `free_list::room` shows whether a list is hidden. Between two
/// operations of the thread:
///
///     shown list:   room == limit - blocks  >= 0              first block: free_list::head
///     hidden list:  room == limit - blocks - hidden_by < -1   first block: hidden_[class]
///
/// During a free into a full list, `room` is -1 for a moment. Such a list counts as shown.
class deferred_frees {
public:
    static constexpr std::uint32_t capacity = 16;

    /// Returns whether a list with this `room` is hidden, so that its blocks cannot be allocated
    /// until the deferred frees are checked. Any thread may call this function.
    static constexpr bool is_hidden(std::int32_t room) noexcept { return room < -1; }
    static bool is_hidden(const free_list& l) noexcept { return is_hidden(l.room); }
    /// Returns the `room` that the list would have if it were not hidden, which is `limit -
    /// blocks`.
    static constexpr std::int32_t room_if_shown(std::int32_t room) noexcept
    {
        return is_hidden(room) ? room + hidden_by : room;
    }

    /// Counts a free of a block that has no room in its free list, or that belongs to another
    /// thread. Returns true after many such frees in a row. The caller should then defer the free.
    bool count_free() noexcept { return ++in_a_row_ > undeferred_in_a_row; }
    void end_row() noexcept { in_a_row_ = 0; }

    /// Defers the free of a block. Returns true if no further block can be deferred. The caller
    /// must then return all deferred blocks.
    [[gnu::always_inline]] bool add(void* block) noexcept
    {
        __builtin_prefetch(block, 1);
        blocks_[count_++] = block;
        return count_ == capacity;
    }
    void* block(std::uint32_t i) const noexcept { return blocks_[i]; }
    const std::uint32_t& count() const noexcept { return count_; }

    /// Removes all deferred blocks and calls `f(block)` for each.
    template <class F>
    void take_blocks(F f) noexcept
    {
        std::uint32_t const count = std::exchange(count_, 0);
        for (std::uint32_t i = 0; i < count; ++i)
            f(blocks_[i]);
    }

    /// Hides the free list of class `index`, so that its blocks cannot be allocated until `show` is
    /// called. Requires that the list is not hidden.
    void hide(free_list& l, std::size_t index) noexcept
    {
        l.room -= hidden_by;
        hidden_[index] = std::exchange(l.head, nullptr);
    }
    /// If the free list of class `index` is hidden, makes its blocks available again. Requires that
    /// no block is deferred.
    void show(free_list& l, std::size_t index) noexcept
    {
        if (!is_hidden(l))
            return;
        l.head = std::exchange(hidden_[index], nullptr);
        l.room += hidden_by;
    }

    /// Returns the pointer to the first block of a list, whether the list is hidden or not. `index`
    /// may be the index of any class.
    void*& head(free_list& l, std::size_t index) noexcept
    {
        return is_hidden(l) ? hidden_[index] : l.head;
    }
    /// Removes and returns the newest block of the hidden list of class `index`. Returns null if
    /// the list is empty or not hidden.
    void* pop_hidden(free_list& l, std::size_t index, std::uint64_t key) noexcept
    {
        void* const block = hidden_[index];
        if (block == nullptr)
            return nullptr;
        hidden_[index] = next_of(block, key);
        l.room += 1;
        return block;
    }
    /// Removes all blocks of a hidden list and returns the first of them. Does not change `room`.
    void* take_hidden(std::size_t index) noexcept { return std::exchange(hidden_[index], nullptr); }
    /// Sets the `room` of a list so that `room_if_shown` returns the argument, whether the list is
    /// hidden or not.
    static void set_room(free_list& l, std::int32_t room) noexcept
    {
        l.room = is_hidden(l) ? room - hidden_by : room;
    }

private:
    static constexpr std::uint32_t undeferred_in_a_row = 64;
    static constexpr std::int32_t hidden_by = std::int32_t{1} << 30;

    std::uint32_t count_ = 0;
    std::uint32_t in_a_row_ = 0; ///< calls of `count_free` since the last refill
    void* blocks_[capacity] = {};
    void* hidden_[deferred_class_count] = {}; ///< first blocks of hidden lists
};

} // namespace mallard::engine
