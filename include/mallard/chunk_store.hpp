// The chunks of one pool, and the free blocks that are not in its front.
#pragma once

#include <mallard/carve_window.hpp>
#include <mallard/chunk_tree.hpp>
#include <mallard/options.hpp>
#include <mallard/pool_chunk.hpp>
#include <mallard/slot_shape.hpp>

namespace mallard {

/// Supplies blocks and takes them back. Takes chunks from the source that each
/// call names.
template <pool_options Options>
class chunk_store {
    using word = pool_chunk::word;
    static constexpr bool watched = Options.checks == check::on;
    static constexpr std::size_t maps = watched ? 2 : 1;
    // A pool that never grows has one chunk, whatever its address. A list finds
    // chunks on slow paths only, through the tree.
    static constexpr bool single = Options.grow.is_single();
    static constexpr bool gridded = Options.order == reuse::ordered && !single;

    struct no_grid {
        constexpr no_grid(std::size_t, std::size_t, std::size_t) noexcept {}
    };
    using grid = std::conditional_t<gridded, chunk_grid, no_grid>;
    using divider =
        std::conditional_t<Options.order == reuse::ordered, slot_divider, plain_divider>;

    // What is left of the last take, in whole chunks that have no header yet.
    struct run {
        std::byte* next = nullptr;
        std::byte* end = nullptr;
        std::size_t bytes() const noexcept { return static_cast<std::size_t>(end - next); }
    };

public:
    constexpr explicit chunk_store(slot_shape shape, growth_function custom) noexcept
        : shape_(shape), divide_(shape.bytes), grid_(Options.chunk_in_limit(), shape.bytes, maps),
          growth_(custom)
    {
    }
    constexpr chunk_store(chunk_store&& other) noexcept
        : shape_(other.shape_), divide_(other.divide_), grid_(other.grid_),
          partial_(std::exchange(other.partial_, nullptr)),
          fresh_(std::exchange(other.fresh_, nullptr)), chunks_(std::move(other.chunks_)),
          window_(std::exchange(other.window_, {})), run_(std::exchange(other.run_, {})),
          growth_(std::exchange(other.growth_, other.growth_.anew()))
    {
    }

    constexpr slot_shape shape() const noexcept { return shape_; }
    constexpr growth_state<Options.grow>& growth() noexcept { return growth_; }

    /// Source bytes that hold `count` blocks.
    static constexpr std::size_t bytes_for(slot_shape shape, std::size_t count) noexcept
    {
        return chunk_plan::bytes_for(count, shape.bytes, shape.align, maps);
    }

    /// Whether the next block to give is one that was never given out.
    bool can_carve() const noexcept { return window_.can_carve(); }

    /// Only when `can_carve()`.
    [[gnu::always_inline]] void* carve() noexcept { return window_.carve(shape_.bytes); }

    /// False, or throws, when the source is dry. Else there are recycled blocks,
    /// or blocks to carve. Carves what there is before it grows.
    template <bool Throws, class Source>
    bool replenish(Source& source) noexcept(!Throws)
    {
        if (partial_ != nullptr)
            return true;
        if (window_.is_used_up()) {
            if (fresh_ == nullptr && !grow<Throws>(source))
                return false;
            pool_chunk& c = *fresh_;
            window_.open<watched>(c, shape_.bytes);
            if (c.carved == c.count)
                fresh_ = c.next_fresh;
        }
        window_.show();
        return true;
    }
    bool has_recycled() const noexcept { return partial_ != nullptr; }

    /// Writes at most `out.size()` recycled blocks, the highest address first, so
    /// that taking them from the end walks memory forwards.
    std::size_t recycle(std::span<void*> out) noexcept
    {
        std::size_t count = 0;
        while (count < out.size() && partial_ != nullptr) {
            pool_chunk& c = *partial_;
            word bits = c.free_bits()[c.hint];
            bool const any = bits != 0;
            std::byte* const first = slot_address(&c, c.hint * c.word_bits);
            std::size_t const more =
                std::min(out.size() - count, static_cast<std::size_t>(std::popcount(bits)));
            for (std::size_t i = more; i-- > 0; bits &= bits - 1)
                out[count + i] =
                    first + static_cast<std::size_t>(std::countr_zero(bits)) * shape_.bytes;
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

    /// Costs a bit each; the blocks are not touched. Neighbours that are put back
    /// together share one write.
    void put_back(std::span<void* const> blocks) noexcept
    {
        divider const divide = divide_; // not read again after every bit
        grid const in = grid_;
        std::size_t const bytes = shape_.bytes;
        pool_chunk* c = nullptr;
        word* at = nullptr;
        word bits = 0;
        for (void* const block : blocks) {
            std::size_t slot;
            if constexpr (gridded) {
                std::size_t const offset = in.offset_of(block);
                c = in.header_in(static_cast<std::byte*>(block) - offset);
                slot = divide(offset, bytes);
            } else {
                c = chunk_of(block);
                slot = slot_of(c, block);
            }
            word* const here = c->free_bits() + slot / pool_chunk::word_bits;
            if (here != at) {
                bits = *here;
                at = here;
                if (bits == 0)
                    list_word(c);
            }
            bits |= pool_chunk::bit(slot);
            *at = bits;
        }
    }

    /// One of many, from wherever: remembers the chunk of the last.
    void put_back_near(pool_chunk*& hint, void* block) noexcept
    {
        if (hint == nullptr || block < hint->begin() || block >= hint->end())
            hint = chunks_.find(block);
        set_free(hint, slot_of(hint, block));
    }

    pool_chunk* find(const void* p) const noexcept { return chunks_.find(p); }

    /// Of a block of this pool, which need not be looked for.
    pool_chunk* chunk_of(void* block) const noexcept
    {
        if constexpr (gridded)
            return grid_.header_in(static_cast<std::byte*>(block) - grid_.offset_of(block));
        else
            return single ? chunks_.root() : chunks_.find(block);
    }

    std::size_t slot_of(const pool_chunk* c, const void* p) const noexcept
    {
        return divide_(static_cast<std::size_t>(static_cast<const std::byte*>(p) - c->slots),
                       shape_.bytes);
    }
    std::byte* slot_address(const pool_chunk* c, std::size_t slot) const noexcept
    {
        return c->slots + slot * shape_.bytes;
    }

    /// Whether the slot is, or was, given out.
    bool is_carved(const pool_chunk* c, std::size_t slot) const noexcept
    {
        return c->is_carved(slot) && !window_.has(slot_address(c, slot));
    }

    /// `f(block)` for each carved block that is not free here, in address order.
    template <class F>
    void for_each_elsewhere(F& f) const
    {
        chunks_.for_each([&](const pool_chunk& c) {
            for (std::size_t slot = 0; slot < c.carved; ++slot)
                if (is_carved(&c, slot) && !c.is_free(slot))
                    f(static_cast<void*>(slot_address(&c, slot)));
        });
    }

    /// Every block is free, and as if never given out.
    void reset() noexcept
    {
        window_ = {};
        chunks_.for_each([](pool_chunk& c) { c.template uncarve<watched>(); });
        relist();
    }

    template <class Source>
    void release(Source& source) noexcept
    {
        window_ = {};
        give_runs(source, 0, [](const pool_chunk&) { return true; });
        growth_.restart();
    }

    /// For a source that takes everything back by itself.
    void forget() noexcept
    {
        partial_ = fresh_ = nullptr;
        chunks_ = {};
        window_ = {};
        run_ = {};
        growth_.restart();
    }

    template <class Source>
    void trim(Source& source, std::size_t keep) noexcept
    {
        close_window();
        give_runs(source, keep,
                  [](const pool_chunk& c) { return c.free_blocks() == c.carved_blocks(); });
    }

    /// Counts what is neither free here nor yet to carve as live.
    void add_to(statistics& s) const noexcept
    {
        chunks_.for_each([&](const pool_chunk& c) {
            std::size_t const live = c.carved_blocks() - c.free_blocks();
            s.blocks_live += live;
            s.bytes_live += live * shape_.bytes;
            s.bytes_idle += (c.capacity() - live) * shape_.bytes;
            s.chunks += 1;
        });
        s.blocks_live -= window_.bytes() / shape_.bytes;
        s.bytes_live -= window_.bytes();
        s.bytes_idle += window_.bytes() + run_.bytes();
        s.bytes_taken += growth_.taken();
        s.growths += growth_.steps();
    }

private:
    [[gnu::always_inline]] void set_free(pool_chunk* c, std::size_t slot) noexcept
    {
        word& bits = c->free_bits()[slot / pool_chunk::word_bits];
        if (bits == 0)
            list_word(c);
        bits |= pool_chunk::bit(slot);
    }

    /// One more word of `c` gets its first bit.
    [[gnu::always_inline]] void list_word(pool_chunk* c) noexcept
    {
        if (c->partial_words++ == 0) {
            c->next_partial = std::exchange(partial_, c);
            window_.hide();
        }
    }

    /// What is left of the window is as if never carved; `relist` follows.
    void close_window() noexcept
    {
        if (!window_.is_used_up()) {
            pool_chunk* const c = chunks_.find(window_.next());
            c->carved = static_cast<std::uint32_t>(slot_of(c, window_.next()));
        }
        window_ = {};
    }

    /// Makes one more chunk, from what is left of the last take or from a new one.
    template <bool Throws, class Source>
    MALLARD_COLD bool grow(Source& source) noexcept(!Throws)
    {
        chunk taken;
        if (run_.next == run_.end) {
            taken = take_run<Throws>(source);
            if (taken.data == nullptr)
                return false; // nothing has changed
            run_.next = static_cast<std::byte*>(taken.data);
            run_.end = run_.next + taken.bytes / unit() * unit(); // a source may give more
        }
        pool_chunk* const c = make_chunk();
        c->taken = taken;
        c->next_fresh = std::exchange(fresh_, c);
        c->template uncarve<watched>();
        chunks_.insert(c);
        return true;
    }

    template <bool Throws, class Source>
    chunk take_run(Source& source) noexcept(!Throws)
    {
        layout const least = least_chunk();
        if (least.bytes > bytes_max / 2)
            return refuse_absurd<Throws>(source, least);
        if (single && chunks_.root() != nullptr) { // even if smaller than wished for
            if constexpr (Throws)
                throw_bad_alloc();
            return {};
        }
        return take_step<Throws>(source, growth_, least, unit());
    }

    /// A run is a multiple of it.
    std::size_t unit() const noexcept
    {
        if constexpr (gridded)
            return grid_.chunk_bytes();
        else
            return 1;
    }

    layout least_chunk() const noexcept
    {
        if constexpr (gridded)
            return {grid_.chunk_bytes(), grid_.chunk_bytes()};
        else
            return {bytes_for(shape_, 1), alignof(pool_chunk)};
    }

    pool_chunk* make_chunk() noexcept
    {
        if constexpr (gridded) {
            std::byte* const at = std::exchange(run_.next, run_.next + grid_.chunk_bytes());
            return grid_.make_chunk(at, shape_.bytes, maps);
        } else {
            chunk_plan const plan =
                chunk_plan::of(run_.bytes(), shape_.bytes, shape_.align, maps,
                               reinterpret_cast<std::uintptr_t>(run_.next) % shape_.align);
            auto* const c = ::new (run_.next) pool_chunk{};
            c->slots = run_.next + plan.slots_offset;
            c->slots_end = c->slots + plan.count * shape_.bytes;
            c->count = static_cast<std::uint32_t>(plan.count);
            run_.next = run_.end;
            return c;
        }
    }

    /// Gives back every take whose chunks are all idle, beyond `keep` bytes.
    template <class Source, class IsIdle>
    void give_runs(Source& source, std::size_t keep, IsIdle is_idle) noexcept
    {
        pool_chunk* c = chunks_.flatten();
        while (c != nullptr) {
            pool_chunk* const first = c; // in address order, of one take: it knows the take
            chunk const taken = first->taken;
            std::byte* const end = static_cast<std::byte*>(taken.data) + taken.bytes;
            bool idle = true;
            for (; c != nullptr && c->begin() < end; c = c->right)
                idle = idle && is_idle(*c);
            if (idle && taken.bytes > keep) {
                if (taken.data < run_.end && run_.end <= end)
                    run_ = {};
                // To the analyzer two takes might be one. NOLINTNEXTLINE(*-cplusplus.NewDelete)
                unpoison<watched>(taken.data, taken.bytes);
                growth_.gave(taken.bytes);
                give(source, taken);
                continue;
            }
            if (idle)
                keep -= taken.bytes;
            for (pool_chunk* kept = first; kept != c;)
                chunks_.insert(std::exchange(kept, kept->right));
        }
        relist();
    }

    void relist() noexcept
    {
        partial_ = nullptr;
        pool_chunk** fresh_end = &fresh_;
        chunks_.for_each([&](pool_chunk& c) {
            if (c.partial_words != 0)
                c.next_partial = std::exchange(partial_, &c);
            if (c.carved != c.count) {
                *fresh_end = &c;
                fresh_end = &c.next_fresh;
            }
        });
        *fresh_end = nullptr;
    }

    // A store without a chunk is a store whose chunks are used up.
    slot_shape shape_;
    [[no_unique_address]] divider divide_;
    [[no_unique_address]] grid grid_;
    pool_chunk* partial_ = nullptr; // chunks with free bits
    pool_chunk* fresh_ = nullptr;   // chunks with slots to carve
    chunk_tree<pool_chunk> chunks_;
    carve_window window_; // hidden while there are chunks with free bits
    run run_;
    growth_state<Options.grow> growth_;
};

} // namespace mallard
