// The chunks of one pool: taken from its source, found by address, given back.
#pragma once

#include <mallard/detail/pool/chunk_geometry.hpp>
#include <mallard/detail/pool/chunk_tree.hpp>

namespace mallard {

/// Takes chunks from the source that each call names.
template <pool_options Options, header_shape Tail = header_shape{0}>
class chunk_supply {
    struct some_owner {
        void* is = nullptr;
    };
    struct no_owner {
        static constexpr void* is = nullptr;
    };

    // What is left of the last take, in whole chunks that have no header yet.
    struct run {
        std::byte* next = nullptr;
        std::byte* end = nullptr;
        std::size_t bytes() const noexcept { return static_cast<std::size_t>(end - next); }
    };
    // Where each take is one chunk.
    struct no_run {
        constexpr no_run() noexcept = default;
        constexpr no_run(run) noexcept {}
        constexpr operator run() const noexcept { return {}; }
    };

public:
    using geometry = chunk_geometry<Options, Tail>;

    constexpr explicit chunk_supply(slot_shape shape, growth_argument<Options.grow> rule) noexcept
        : growth_(rule), geometry_(shape, growth_.limit())
    {
    }
    constexpr chunk_supply(chunk_supply&& other) noexcept
        : chunks_(std::move(other.chunks_)), run_(std::exchange(other.run_, run())),
          growth_(std::exchange(other.growth_, other.growth_.anew())), geometry_(other.geometry_)
    {
    }

    constexpr const geometry& cut() const noexcept { return geometry_; }
    constexpr growth_state<Options.grow>& growth() noexcept { return growth_; }
    constexpr const growth_state<Options.grow>& growth() const noexcept { return growth_; }

    /// Every chunk says so, those to come included.
    constexpr void lead_to(void* owner) noexcept
        requires(Options.owned)
    {
        owner_.is = owner;
        if (!is_empty())
            chunks_.for_each([owner](pool_chunk& c) { c.owner = owner; });
    }

    constexpr bool is_empty() const noexcept { return chunks_.root() == nullptr; }
    pool_chunk* find(const void* p) const noexcept { return chunks_.find(p); }

    /// Of a block of this pool, which need not be looked for.
    pool_chunk* chunk_of(void* block) const noexcept
    {
        if constexpr (geometry::gridded)
            return geometry_.place_of(block).c;
        else
            return geometry::single ? chunks_.root() : chunks_.find(block);
    }

    typename geometry::place place_of(void* block) const noexcept
    {
        if constexpr (geometry::gridded) {
            return geometry_.place_of(block);
        } else {
            pool_chunk* const c = chunk_of(block);
            return {c, geometry_.slot_of(c, block)};
        }
    }

    template <class F>
    void for_each(F f) const
    {
        chunks_.for_each(f);
    }

    /// Makes one more chunk, from what is left of the last take or from a new one.
    /// Null, or throws, when the source is dry: then nothing has changed.
    template <bool Throws, class Source>
    MALLARD_COLD pool_chunk* make(Source& source) noexcept(!Throws)
    {
        chunk taken;
        run left = run_;
        if (left.next == left.end) {
            taken = take_run<Throws>(source);
            if (taken.data == nullptr)
                return nullptr;
            left.next = static_cast<std::byte*>(taken.data);
            left.end = left.next + taken.bytes;
        }
        pool_chunk* const c = geometry_.make_chunk(left.next, left.bytes());
        left.next += geometry_.bytes_of_chunk(left.bytes());
        run_ = left;
        c->taken = taken;
        c->owner = owner_.is;
        chunks_.insert(c);
        return c;
    }

    /// Gives back every take whose chunks are all idle, beyond `keep` bytes.
    template <class Source, class IsIdle>
    void give_idle(Source& source, std::size_t keep, IsIdle is_idle) noexcept
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
                std::byte* const left = run(run_).end;
                if (taken.data < left && left <= end)
                    run_ = run();
                // To the analyzer two takes might be one. NOLINTNEXTLINE(*-cplusplus.NewDelete)
                unpoison<geometry::watched>(taken.data, taken.bytes);
                growth_.gave(taken.bytes);
                give(source, taken);
                continue;
            }
            if (idle)
                keep -= taken.bytes;
            for (pool_chunk* kept = first; kept != c;)
                chunks_.insert(std::exchange(kept, kept->right));
        }
    }

    template <class Source>
    void release(Source& source) noexcept
    {
        give_idle(source, 0, [](const pool_chunk&) { return true; });
        growth_.restart();
    }

    /// For a source that takes everything back by itself.
    void forget() noexcept
    {
        chunks_ = {};
        run_ = run();
        growth_.restart();
    }

    void add_to(statistics& s) const noexcept
    {
        s.bytes_idle += run(run_).bytes();
        s.bytes_taken += growth_.taken();
        s.growths += growth_.steps();
    }

private:
    template <bool Throws, class Source>
    chunk take_run(Source& source) noexcept(!Throws)
    {
        layout const least = geometry_.least_chunk();
        if (least.bytes > bytes_max / 2)
            return refuse_absurd<Throws>(source, least);
        if (geometry::single && chunks_.root() != nullptr) { // even if smaller than wished for
            if constexpr (Throws)
                throw_bad_alloc();
            return {};
        }
        // A whole chunk, or else all that the limit has left.
        std::size_t const most = std::min(geometry_.whole_chunk(), growth_.left());
        return take_step<Throws>(source, growth_, least, std::max(most, least.bytes),
                                 [this](std::size_t bytes) {
                                     return geometry_.useful_bytes(bytes, growth_.is_limited());
                                 });
    }

    chunk_tree<pool_chunk> chunks_;
    [[no_unique_address]] std::conditional_t<geometry::gridded, run, no_run> run_;
    growth_state<Options.grow> growth_;
    geometry geometry_;
    [[no_unique_address]] std::conditional_t<Options.owned, some_owner, no_owner> owner_;
};

} // namespace mallard
