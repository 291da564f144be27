// The cores of a multipool that one thread uses, made when they are first needed.
#pragma once

#include <mallard/detail/pool/core_array.hpp>
#include <mallard/detail/pool/starter.hpp>

namespace mallard {

/// As `core_array`, but a size that nobody asks for costs a pointer. Cores are made in
/// groups of neighbours, in memory from the source, and stay until all is released. A
/// multipool is so for the few sizes of one small container, too: with all cores of
/// 56 sizes in it, 7 KiB had to be written before the first block.
///
/// No test for a core that is not made: it is one that all share, which has nothing at
/// hand, so that only `refill` has to look. It is never written to.
///
/// A core takes a chunk only when the starter has no room left. Blocks of both come back
/// to it alike.
template <class Core, std::size_t N, class Rule, class Starter>
class lazy_cores {
    static constexpr std::size_t group_size = 8;

    struct group {
        std::array<Core, group_size> cores;
        chunk taken;
    };

public:
    /// `shapes` outlive it.
    constexpr lazy_cores(const std::array<slot_shape, N>& shapes, Rule rule) noexcept
        : shapes_(&shapes), rule_(rule)
    {
        forget();
    }
    constexpr lazy_cores(lazy_cores&& other) noexcept
        : cores_(other.cores_), shapes_(other.shapes_), rule_(other.rule_),
          starter_(std::move(other.starter_))
    {
        other.forget();
    }

    /// A fork is the caller's to look after.
    static constexpr void enlist() noexcept {}
    template <class Mutex>
    static constexpr void hold_at_fork(std::mutex*, Mutex*) noexcept
    {
    }

    template <bool Throws, class Source>
    [[gnu::always_inline]] void* allocate(Source& source, std::size_t i) noexcept(!Throws)
    {
        return cores_[i]->allocate_or(
            [&]() noexcept(!Throws) { return refill<Throws>(source, i); });
    }
    template <class Source>
    [[gnu::always_inline]] void deallocate(Source& source, std::size_t i, void* block) noexcept
    {
        cores_[i]->deallocate(source, block);
    }

    bool owns(const void* p) const noexcept { return classify(p) != validity::miss; }

    validity classify(const void* p) const noexcept
    {
        validity answer = starter_.owns(p) ? validity::invalid : validity::miss;
        starter_.for_each(*shapes_, [&](auto&, const void* block, std::size_t i) {
            if (block == p && !cores_[i]->has_at_hand(p))
                answer = validity::valid;
        });
        for_each_group([&](group& g) {
            for (Core const& core : g.cores)
                answer = answer == validity::miss ? core.classify(p) : answer;
        });
        return answer;
    }

    void reset() noexcept
    {
        for_each_core([](Core& core) { core.reset(); });
        starter_.reset();
    }

    template <class Source>
    void release(Source& source) noexcept
    {
        for_each_group([&](group& g) {
            for (Core& core : g.cores)
                core.release(source);
            give(source, g.taken);
        });
        starter_.release(source);
        forget();
    }

    /// For a source that takes everything back by itself.
    constexpr void forget() noexcept
    {
        cores_.fill(&absent_);
        starter_.forget();
    }

    template <class Source>
    void trim(Source& source, std::size_t keep) noexcept
    {
        starter_.trim(
            source, *shapes_, [this](auto f) { this->for_each_core(f); },
            [&](Core& core) { core.trim(source, keep); });
    }

    void add_to(statistics& s) const noexcept
    {
        starter_.add_to(s);
        starter_.for_each(*shapes_, [&](auto&, const void*, std::size_t i) {
            s.blocks_live += 1; // or else it is at hand in its core, which knows
            s.bytes_live += (*shapes_)[i].bytes;
        });
        for_each_group([&](group& g) {
            s.bytes_taken += g.taken.bytes;
            for (Core const& core : g.cores)
                core.add_to(s);
        });
    }

private:
    /// Nothing is at hand: makes the core, if there is none, then cuts or takes a chunk.
    template <bool Throws, class Source>
    [[gnu::noinline]] void* refill(Source& source, std::size_t i) noexcept(!Throws)
    {
        bool const is_new = cores_[i] == &absent_;
        std::size_t const first = i / group_size * group_size;
        if (is_new && !make_group<Throws>(source, first))
            return nullptr;
        undo without_block([&] {
            if (is_new)
                drop_group(source, first);
        });
        if (cores_[i]->is_used_up())
            cores_[i]->borrow(starter_.cut(source, (*shapes_)[i], i));
        void* const block = cores_[i]->template allocate<Throws>(source);
        if (block != nullptr)
            without_block.keep();
        return block;
    }

    /// None of its cores has a chunk.
    template <class Source>
    void drop_group(Source& source, std::size_t first) noexcept
    {
        chunk const taken = group_at(first)->taken;
        std::fill(cores_.begin() + first, cores_.begin() + std::min(first + group_size, N),
                  &absent_);
        give(source, taken);
    }

    /// Of `first` and those after it. False, or throws, when the source is dry.
    template <bool Throws, class Source>
    bool make_group(Source& source, std::size_t first) noexcept(!Throws)
    {
        chunk const taken = take_or_null<Throws>(source, layout_of<group>());
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
        auto const shape = [&](std::size_t i) { return (*shapes_)[std::min(first + i, N - 1)]; };
        return ::new (taken.data) group{{Core(shape(Index), rule_)...}, taken};
    }

    // Its first core is its first byte.
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
    const std::array<slot_shape, N>* shapes_;
    [[no_unique_address]] Rule rule_;
    [[no_unique_address]] Starter starter_;
};

} // namespace mallard
