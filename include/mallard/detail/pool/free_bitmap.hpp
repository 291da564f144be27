// The free blocks of a pool that are not in its cache. A freed block has its bit set in the header
// of its chunk. A block that was never allocated has no bit set, but is in a range of slots that
// were never used.
#pragma once

#include <mallard/detail/pool/chunk_list.hpp>

#include <span>

namespace mallard {

/// Adjacent slots that were never allocated. Their free bits are clear. To allocate a slot, a
/// pointer moves; the slot itself is not touched.
class bump_range {
public:
    constexpr bump_range() noexcept = default;
    constexpr explicit bump_range(std::span<std::byte> slots) noexcept
        : next_(slots.data()), limit_(slots.data() + slots.size()), end_(limit_)
    {
    }

    /// Returns whether a slot can be carved. Returns false while the range is paused, and when it
    /// is used up.
    bool can_carve() const noexcept { return next_ != limit_; }
    bool is_used_up() const noexcept { return next_ == end_; }

    /// Returns the next slot. Requires `can_carve()`. `stride` is the size of a slot in bytes.
    [[gnu::always_inline]] void* carve(std::size_t stride) noexcept
    {
        return std::exchange(next_, next_ + stride);
    }

    /// Makes `can_carve()` false until `resume`. The range is paused while there are free blocks
    /// that were used before, because these are allocated first.
    void pause() noexcept { limit_ = next_; }
    void resume() noexcept { limit_ = end_; }

    bool has(const void* p) const noexcept { return next_ <= p && p < end_; }
    std::byte* next() const noexcept { return next_; }
    std::size_t bytes() const noexcept { return static_cast<std::size_t>(end_ - next_); }

private:
    // next_ <= end_. limit_ is equal to next_ while the range is paused, otherwise to end_.
    std::byte* next_ = nullptr;
    std::byte* limit_ = nullptr;
    std::byte* end_ = nullptr;
};

/// The free blocks in a set of chunks, which belong to a `chunk_list` of type `List`. A new object
/// has no chunks.
template <class List>
class free_bitmap {
    using word = pool_chunk::word;
    static constexpr bool checks_on = List::checks_on;

public:
    constexpr free_bitmap() noexcept = default;
    constexpr free_bitmap(free_bitmap&& other) noexcept
        : partial_(std::exchange(other.partial_, nullptr)),
          unused_(std::exchange(other.unused_, nullptr)), fresh_(std::exchange(other.fresh_, {}))
    {
    }
    constexpr free_bitmap& operator=(free_bitmap&& other) noexcept
    {
        partial_ = std::exchange(other.partial_, nullptr);
        unused_ = std::exchange(other.unused_, nullptr);
        fresh_ = std::exchange(other.fresh_, {});
        return *this;
    }

    /// Returns whether the next block to allocate comes from a slot that was never carved.
    bool can_carve() const noexcept { return fresh_.can_carve(); }
    /// Returns a block that was never allocated. Requires `can_carve()`.
    [[gnu::always_inline]] void* carve(const List& chunks) noexcept
    {
        return fresh_.carve(chunks.shape().bytes);
    }
    /// Returns whether there are free blocks that were used before.
    bool has_recycled() const noexcept { return partial_ != nullptr; }

    /// Adds a chunk whose slots were never allocated.
    void add(pool_chunk* c) noexcept { c->next_fresh = std::exchange(unused_, c); }
    /// Adds slots that were never carved and lie in no chunk of the list. Requires that no free
    /// block is left.
    void add(std::span<std::byte> slots) noexcept { fresh_ = bump_range(slots); }

    /// Prepares recycled blocks for allocation, or else never-carved slots. Returns false if no
    /// free block is left.
    bool replenish(const List& chunks) noexcept
    {
        if (partial_ != nullptr)
            return true;
        if (fresh_.is_used_up()) {
            if (unused_ == nullptr)
                return false;
            open(chunks, *unused_);
        }
        fresh_.resume();
        return true;
    }

    /// Allocates recycled blocks (blocks that were freed). Writes at most `out.size()` of them to
    /// `out`, the highest address first, so a caller that uses `out` from its end gets ascending
    /// addresses.
    std::size_t recycle(const List& chunks, std::span<void*> out) noexcept
    {
        std::size_t const stride = chunks.shape().bytes;
        std::size_t count = 0;
        while (count < out.size() && partial_ != nullptr) {
            pool_chunk& c = *partial_;
            word bits = c.free_bits()[c.hint];
            bool const any = bits != 0;
            std::byte* const first = chunks.slot_address(&c, c.hint * c.word_bits);
            std::size_t const more =
                std::min(out.size() - count, static_cast<std::size_t>(std::popcount(bits)));
            for (std::size_t i = more; i-- > 0; bits &= bits - 1)
                out[count + i] = first + static_cast<std::size_t>(std::countr_zero(bits)) * stride;
            count += more;
            c.free_bits()[c.hint] = bits;
            if (bits != 0)
                break;
            c.hint =
                c.hint != 0 ? c.hint - 1 : static_cast<std::uint32_t>(c.words_for(c.carved)) - 1;
            c.partial_words -= any;
            if (c.partial_words == 0)
                partial_ = c.next_partial;
        }
        return count;
    }

    /// Like `recycle`, but allocates never-carved slots. Requires that there are no recycled
    /// blocks.
    std::size_t carve(const List& chunks, std::span<void*> out) noexcept
    {
        std::size_t const count = std::min(out.size(), fresh_.bytes() / chunks.shape().bytes);
        for (std::size_t i = count; i-- > 0;)
            out[i] = carve(chunks);
        return count;
    }

    /// Frees blocks. Sets a bit for each block, and does not touch the block. Consecutive blocks
    /// whose bits are in the same word share one write.
    void put_back(const List& chunks, std::span<void* const> blocks) noexcept
    {
        auto const place_of = chunks.finder(); // a copy of the layout, which no write below changes
        word* last = nullptr;
        word bits = 0;
        for (void* const block : blocks) {
            auto const to = place_of(block);
            word* const at = to.c->free_bits() + to.slot / pool_chunk::word_bits;
            if (at != last) {
                bits = *at;
                last = at;
                if (bits == 0)
                    count_word(to.c);
            }
            bits |= pool_chunk::bit(to.slot);
            *at = bits;
        }
    }

    [[gnu::always_inline]] void set_free(pool_chunk* c, std::size_t slot) noexcept
    {
        set_free(c, slot / pool_chunk::word_bits, pool_chunk::bit(slot));
    }

    /// Frees several blocks whose bits are in the word at index `at`. Requires that none of the
    /// blocks is free.
    [[gnu::always_inline]] void set_free(pool_chunk* c, std::size_t at, word some) noexcept
    {
        word& bits = c->free_bits()[at];
        if (bits == 0)
            count_word(c);
        bits |= some;
    }

    /// Returns whether the slot was ever carved, that is, whether its block was allocated at least
    /// once.
    bool is_carved(const List& chunks, const pool_chunk* c, std::size_t slot) const noexcept
    {
        return c->is_carved(slot) && !fresh_.has(chunks.slot_address(c, slot));
    }

    const bump_range& fresh() const noexcept { return fresh_; }
    /// Removes and returns the range of never-carved slots, as if their blocks had been allocated.
    bump_range take_fresh() noexcept { return std::exchange(fresh_, {}); }

    /// Discards all chunks. Before that, returns the slots that are left in the bump range to their
    /// chunk, as slots that were never carved.
    void clear(const List& chunks) noexcept
    {
        pool_chunk* const c = fresh_.is_used_up() ? nullptr : chunks.find(fresh_.next());
        if (c != nullptr)
            c->carved = static_cast<std::uint32_t>(chunks.slot_of(c, fresh_.next()));
        *this = {};
    }

    /// Rebuilds the lists from the chunks for which `is_mine(c)` is true, and returns the number of
    /// these chunks.
    template <class IsMine>
    std::size_t rebuild(const List& chunks, IsMine is_mine) noexcept
    {
        *this = {};
        std::size_t count = 0;
        pool_chunk** unused_end = &unused_;
        chunks.for_each([&](pool_chunk& c) {
            if (!is_mine(c))
                return;
            count += 1;
            if (c.partial_words != 0)
                c.next_partial = std::exchange(partial_, &c);
            if (c.carved != c.count) {
                *unused_end = &c;
                unused_end = &c.next_fresh;
            }
        });
        *unused_end = nullptr;
        return count;
    }

private:
    // The largest number of slots whose bits are cleared together. This limits the bits to 512
    // bytes, so that no allocation takes long.
    static constexpr std::size_t fresh_slots_max = 4096;

    /// Makes the next never-carved slots of `c` the bump range. Requires that `c` has such slots.
    void open(const List& chunks, pool_chunk& c) noexcept
    {
        std::size_t const first = c.carved;
        std::size_t const hole_or_end = first < c.hole_begin ? c.hole_begin : c.count;
        std::size_t const end = std::min(hole_or_end, first + fresh_slots_max);
        fresh_ = bump_range({chunks.slot_address(&c, first), chunks.slot_address(&c, end)});
        c.carve_to(end, checks_on);
        if (c.carved == c.count)
            unused_ = c.next_fresh;
    }

    /// Counts one more nonzero word of free bits in `c`. Called when a bit is set in a word
    /// that was 0.
    [[gnu::always_inline]] void count_word(pool_chunk* c) noexcept
    {
        if (c->partial_words++ == 0) {
            c->next_partial = std::exchange(partial_, c);
            fresh_.pause();
        }
    }

    pool_chunk* partial_ = nullptr; // chunks with free bits
    pool_chunk* unused_ = nullptr;  // chunks with slots to carve
    bump_range fresh_;              // paused while there are chunks with free bits
};

} // namespace mallard
