// The free blocks of a pool that are not in its front: a bit each in the header of
// their chunk, or not yet carved.
#pragma once

#include <mallard/detail/pool/carve_window.hpp>
#include <mallard/detail/pool/chunk_supply.hpp>

namespace mallard {

/// Gives the blocks of some chunks and takes them back. `Geometry` is passed to
/// each call: it is the same for all stores of a pool.
template <class Geometry>
class chunk_store {
    using word = pool_chunk::word;
    static constexpr bool watched = Geometry::watched;

public:
    constexpr chunk_store() noexcept = default;
    constexpr chunk_store(chunk_store&& other) noexcept
        : partial_(std::exchange(other.partial_, nullptr)),
          fresh_(std::exchange(other.fresh_, nullptr)), window_(std::exchange(other.window_, {}))
    {
    }
    constexpr chunk_store& operator=(chunk_store&& other) noexcept
    {
        partial_ = std::exchange(other.partial_, nullptr);
        fresh_ = std::exchange(other.fresh_, nullptr);
        window_ = std::exchange(other.window_, {});
        return *this;
    }

    /// Whether the next block to give is one that was never given out.
    bool can_carve() const noexcept { return window_.can_carve(); }

    /// Only when `can_carve()`.
    [[gnu::always_inline]] void* carve(const Geometry& cut) noexcept
    {
        return window_.carve(cut.shape().bytes);
    }

    /// A chunk whose slots were never given out.
    void add(pool_chunk* c) noexcept { c->next_fresh = std::exchange(fresh_, c); }

    /// Slots that are of none of the chunks, when nothing is left of those.
    void borrow(std::span<std::byte> slots) noexcept { window_.open(slots); }

    bool has_recycled() const noexcept { return partial_ != nullptr; }

    /// False: nothing is left. Else there are recycled blocks, or else blocks to
    /// carve.
    bool replenish(const Geometry& cut) noexcept
    {
        if (partial_ != nullptr)
            return true;
        if (window_.is_used_up()) {
            if (fresh_ == nullptr)
                return false;
            pool_chunk& c = *fresh_;
            window_.template open<watched>(c, cut.shape().bytes);
            if (c.carved == c.count)
                fresh_ = c.next_fresh;
        }
        window_.show();
        return true;
    }

    /// Writes at most `out.size()` recycled blocks, the highest address first, so
    /// that taking them from the end walks memory forwards.
    std::size_t recycle(const Geometry& cut, std::span<void*> out) noexcept
    {
        std::size_t const stride = cut.shape().bytes;
        std::size_t count = 0;
        while (count < out.size() && partial_ != nullptr) {
            pool_chunk& c = *partial_;
            word bits = c.free_bits()[c.hint];
            bool const any = bits != 0;
            std::byte* const first = cut.slot_address(&c, c.hint * c.word_bits);
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

    /// The same for blocks that were never given out, when there are none recycled.
    std::size_t carve(const Geometry& cut, std::span<void*> out) noexcept
    {
        std::size_t const count = std::min(out.size(), window_.bytes() / cut.shape().bytes);
        for (std::size_t i = count; i-- > 0;)
            out[i] = carve(cut);
        return count;
    }

    /// Costs a bit each; the blocks are not touched. Neighbours that are put back
    /// together share one write.
    template <class Supply>
    void put_back(const Supply& supply, std::span<void* const> blocks) noexcept
    {
        Geometry const cut = supply.cut(); // not read again after every bit
        word* at = nullptr;
        word bits = 0;
        for (void* const block : blocks) {
            typename Geometry::place to;
            if constexpr (Geometry::gridded) {
                to = cut.place_of(block);
            } else {
                to.c = supply.chunk_of(block);
                to.slot = cut.slot_of(to.c, block);
            }
            word* const here = to.c->free_bits() + to.slot / pool_chunk::word_bits;
            if (here != at) {
                bits = *here;
                at = here;
                if (bits == 0)
                    list_word(to.c);
            }
            bits |= pool_chunk::bit(to.slot);
            *at = bits;
        }
    }

    [[gnu::always_inline]] void set_free(pool_chunk* c, std::size_t slot) noexcept
    {
        word& bits = c->free_bits()[slot / pool_chunk::word_bits];
        if (bits == 0)
            list_word(c);
        bits |= pool_chunk::bit(slot);
    }

    /// Several of one word, none of which was free.
    void set_free(pool_chunk* c, std::size_t at, word some) noexcept
    {
        word& bits = c->free_bits()[at];
        if (bits == 0)
            list_word(c);
        bits |= some;
    }

    /// Whether the slot of a chunk of this store is, or was, given out.
    bool is_carved(const Geometry& cut, const pool_chunk* c, std::size_t slot) const noexcept
    {
        return c->is_carved(slot) && !window_.has(cut.slot_address(c, slot));
    }

    bool is_in_window(const void* block) const noexcept { return window_.has(block); }

    /// What was carved last and not given out yet is the caller's.
    carve_window take_window() noexcept { return std::exchange(window_, {}); }
    const carve_window& window() const noexcept { return window_; }
    std::size_t window_bytes() const noexcept { return window_.bytes(); }

    /// Forgets all chunks, and that what is left of the window was carved.
    template <class Supply>
    void forget(const Supply& supply) noexcept
    {
        pool_chunk* const c = window_.is_used_up() ? nullptr : supply.find(window_.next());
        if (c != nullptr) // else they are borrowed
            c->carved = static_cast<std::uint32_t>(supply.cut().slot_of(c, window_.next()));
        *this = {};
    }

    /// Finds its chunks again, by `mine(c)`, and says how many there are.
    template <class Supply, class IsMine>
    std::size_t list(const Supply& supply, IsMine mine) noexcept
    {
        *this = {};
        std::size_t count = 0;
        pool_chunk** fresh_end = &fresh_;
        supply.for_each([&](pool_chunk& c) {
            if (!mine(c))
                return;
            count += 1;
            if (c.partial_words != 0)
                c.next_partial = std::exchange(partial_, &c);
            if (c.carved != c.count) {
                *fresh_end = &c;
                fresh_end = &c.next_fresh;
            }
        });
        *fresh_end = nullptr;
        return count;
    }

private:
    /// One more word of `c` gets its first bit.
    [[gnu::always_inline]] void list_word(pool_chunk* c) noexcept
    {
        if (c->partial_words++ == 0) {
            c->next_partial = std::exchange(partial_, c);
            window_.hide();
        }
    }

    // A store without a chunk is a store whose chunks are used up.
    pool_chunk* partial_ = nullptr; // chunks with free bits
    pool_chunk* fresh_ = nullptr;   // chunks with slots to carve
    carve_window window_;           // hidden while there are chunks with free bits
};

} // namespace mallard
