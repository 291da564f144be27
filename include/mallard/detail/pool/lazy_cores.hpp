// The pools of a multipool for one thread. Each pool is constructed when its first block is needed.
#pragma once

#include <mallard/detail/pool/bootstrap_slabs.hpp>
#include <mallard/detail/pool/pool_core.hpp>

namespace mallard {

/// A `Core` (a pool without its source) for each of `N` size classes. A class that is never used
/// costs one pointer. The cores of eight consecutive classes are constructed together, in memory
/// from the source, and exist until all memory is released (docs/decisions/0026).
///
/// The hot path does not test whether a core exists. Until a core is made, its pointer points to
/// `absent_`, an empty core that all multipools share. An allocation finds no block in `absent_`,
/// and so calls `refill`, which compares the pointer with `absent_`. No thread writes to `absent_`.
///
/// The first blocks of all classes are cut from slabs that the classes share (bootstrap_slabs.hpp).
/// A core requests its own chunks only when the slabs are used up. The cache of a core may hold
/// blocks of slabs and blocks of chunks.
template <class Core, std::size_t N, class Rule, bool HasSlabs>
class lazy_cores {
    static constexpr std::size_t group_size = 8;

    struct group {
        std::array<Core, group_size> cores;
        chunk taken;
    };

public:
    /// Returns how many bytes a source must have for one block of this shape.
    static constexpr std::size_t bytes_for_one(slot_shape shape) noexcept
    {
        return sizeof(group) + bytes_at_any_address(Core::least_chunk(shape));
    }

    constexpr explicit lazy_cores(const std::array<slot_shape, N>&, Rule rule) noexcept
        : rule_(rule)
    {
        forget();
    }
    constexpr lazy_cores(lazy_cores&& other) noexcept
        : cores_(other.cores_), rule_(other.rule_), slabs_(std::move(other.slabs_))
    {
        other.forget();
    }

    template <bool Throws, class Source>
    [[gnu::always_inline]] void* allocate(Source& source, std::size_t i) noexcept(!Throws)
    {
        return cores_[i]->allocate_or(
            [&]() noexcept(!Throws) { return refill<Throws>(source, i); });
    }
    template <class Source>
    [[gnu::always_inline]] void deallocate(Source& source, void* block, std::size_t i) noexcept
    {
        cores_[i]->deallocate(source, block);
    }

    bool owns(const void* p) const noexcept { return classify(p) != validity::miss; }

    /// Returns whether `p` points into a chunk of size class `i`.
    bool owns(const void* p, std::size_t i) const noexcept { return cores_[i]->owns(p); }

    validity classify(const void* p) const noexcept
    {
        if (slabs_.owns(p)) {
            std::size_t const i = slabs_.class_of(p);
            bool const live = i != N && !cores_[i]->has_cached(p);
            return live ? validity::valid : validity::invalid;
        }
        validity answer = validity::miss;
        for_each_core([&](const Core& core) {
            answer = answer == validity::miss ? core.classify(p) : answer;
        });
        return answer;
    }

    void reset() noexcept
    {
        for_each_core([](Core& core) { core.reset(); });
        slabs_.reset();
    }

    template <class Source>
    void release(Source& source) noexcept
    {
        for_each_group([&](group& g) {
            for (Core& core : g.cores)
                core.release(source);
            give(source, g.taken);
        });
        slabs_.release(source);
        forget();
    }

    /// Discards all memory without returning it. Called when the source frees all of its memory in
    /// one call.
    constexpr void forget() noexcept
    {
        cores_.fill(&absent_);
        slabs_.forget();
    }

    template <class Source>
    void trim(Source& source, std::size_t keep) noexcept
    {
        slabs_.begin_trim();
        for (std::size_t i = 0; i < N; ++i)
            if (cores_[i] != &absent_)
                cores_[i]->trim(source, keep,
                                [this, i](void* block) { slabs_.set_free(block, i); });
        slabs_.end_trim(source,
                        [&](void* block, std::size_t i) { cores_[i]->deallocate(source, block); });
    }

    void add_to(statistics& s) const noexcept
    {
        slabs_.add_to(s);
        for_each_group([&](group& g) {
            s.bytes_taken += g.taken.bytes;
            for (Core const& core : g.cores)
                core.add_to(s);
        });
    }

private:
    /// Runs the slow path of `allocate`. Allocates a block that was freed, or else a block from a
    /// slab, or else a block from a chunk. Makes the core first if it does not exist.
    template <bool Throws, class Source>
    [[gnu::noinline]] void* refill(Source& source, std::size_t i) noexcept(!Throws)
    {
        Core& core = *cores_[i];
        if (&core == &absent_)
            return make_and_refill<Throws>(source, i);
        if (void* const block = core.refill_without_growth())
            return block;
        if (std::span<std::byte> const fresh = slabs_.cut(source, i); !fresh.empty())
            return core.allocate_of(fresh);
        return core.template allocate<Throws>(source);
    }

    /// Makes the core of size class `i`, then allocates its first block. If the allocation fails,
    /// the core is removed again.
    template <bool Throws, class Source>
    [[gnu::noinline]] void* make_and_refill(Source& source, std::size_t i) noexcept(!Throws)
    {
        std::size_t const first = i / group_size * group_size;
        if (!make_group<Throws>(source, first))
            return nullptr;
        undo without_block([&] { drop_group(source, first); });
        void* const block = refill<Throws>(source, i);
        if (block != nullptr)
            without_block.keep();
        return block;
    }

    /// Makes the group of cores that begins at index `first`. Returns false, or throws, if the
    /// source is exhausted.
    template <bool Throws, class Source>
    bool make_group(Source& source, std::size_t first) noexcept(!Throws)
    {
        chunk const taken = take_verified<Throws>(source, layout_of<group>());
        if (taken.data == nullptr)
            return false;
        auto* const made = make_at(taken, first, std::make_index_sequence<group_size>());
        for (std::size_t i = 0; i < group_size && first + i < N; ++i)
            cores_[first + i] = &made->cores[i];
        return true;
    }
    template <std::size_t... Index>
    group* make_at(chunk taken, std::size_t first, std::index_sequence<Index...>) const noexcept
    {
        auto const shape = [&](std::size_t i) {
            return class_shapes<N>[std::min(first + i, N - 1)];
        };
        return ::new (taken.data) group{{Core(shape(Index), rule_)...}, taken};
    }

    /// Undoes `make_group`. Requires that no core of the group has a chunk.
    template <class Source>
    void drop_group(Source& source, std::size_t first) noexcept
    {
        chunk const taken = group_at(first)->taken;
        std::fill(cores_.begin() + first, cores_.begin() + std::min(first + group_size, N),
                  &absent_);
        give(source, taken);
    }

    // The address of a group is the address of its first core.
    group* group_at(std::size_t first) const noexcept
    {
        return reinterpret_cast<group*>(cores_[first]);
    }

    template <class F>
    void for_each_group(F f) const
    {
        for (std::size_t first = 0; first < N; first += group_size)
            if (cores_[first] != &absent_)
                f(*group_at(first));
    }
    template <class F>
    void for_each_core(F f) const
    {
        for_each_group([&](group& g) {
            for (Core& core : g.cores)
                f(core);
        });
    }

    static inline constinit Core absent_{slot_shape{sizeof(void*), sizeof(void*)}, Rule{}};

    std::array<Core*, N> cores_;
    [[no_unique_address]] Rule rule_;
    bootstrap_slabs<N, HasSlabs> slabs_;
};

} // namespace mallard
