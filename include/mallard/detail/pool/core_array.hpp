// The cores of a pool, one, or of a multipool, one a size class, where each is
// on its own: every `sync` but `thread_cached`.
#pragma once

#include <mallard/detail/base/undo.hpp>
#include <mallard/detail/pool/slot_shape.hpp>

#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <utility>

namespace mallard {

template <class Core, std::size_t N>
class core_array {
public:
    using geometry = typename Core::geometry;

    template <class Rule>
    constexpr core_array(const std::array<slot_shape, N>& shapes, Rule rule) noexcept
        : core_array(shapes, rule, std::make_index_sequence<N>())
    {
    }

    static constexpr std::size_t bytes_for(slot_shape shape, std::size_t count) noexcept
    {
        return Core::bytes_for(shape, count);
    }

    /// A fork is the caller's to look after.
    static constexpr void enlist() noexcept {}
    template <class Mutex>
    static constexpr void hold_at_fork(std::mutex*, Mutex*) noexcept
    {
    }

    constexpr void lead_to(void* owner) noexcept
    {
        for (auto& core : cores_)
            core.lead_to(owner);
    }

    constexpr slot_shape shape(std::size_t i) const noexcept { return cores_[i].shape(); }

    template <bool Throws, class Source>
    [[gnu::always_inline]] void* allocate(Source& source, std::size_t i) noexcept(!Throws)
    {
        return cores_[i].template allocate<Throws>(source);
    }
    template <class Source>
    [[gnu::always_inline]] void deallocate(Source& source, std::size_t i, void* block) noexcept
    {
        cores_[i].deallocate(source, block);
    }

    /// All or nothing.
    template <bool Throws, class Source>
    bool allocate_batch(Source& source, std::size_t i, std::span<void*> out) noexcept(!Throws)
    {
        return cores_[i].template allocate_batch<Throws>(source, out);
    }
    template <class Source>
    void deallocate_batch(Source& source, std::size_t i, std::span<void* const> blocks) noexcept
    {
        cores_[i].deallocate_batch(source, blocks);
    }

    bool owns(const void* p) const noexcept
    {
        return std::any_of(cores_.begin(), cores_.end(), [p](auto& core) { return core.owns(p); });
    }
    validity classify(const void* p) const noexcept
    {
        for (auto const& core : cores_)
            if (validity const answer = core.classify(p); answer != validity::miss)
                return answer;
        return validity::miss;
    }

    template <class F>
    void for_each(F& f)
    {
        for (auto& core : cores_)
            core.for_each(f);
    }
    void reset() noexcept
    {
        for (auto& core : cores_)
            core.reset();
    }
    template <class Source>
    void release(Source& source) noexcept
    {
        for (auto& core : cores_)
            core.release(source);
    }
    void forget() noexcept
    {
        for (auto& core : cores_)
            core.forget();
    }
    template <class Source>
    void trim(Source& source, std::size_t keep) noexcept
    {
        for (auto& core : cores_)
            core.trim(source, keep);
    }
    void add_to(statistics& s) const noexcept
    {
        for (auto const& core : cores_)
            core.add_to(s);
    }

private:
    template <class Rule, std::size_t... Index>
    constexpr core_array(const std::array<slot_shape, N>& shapes, Rule rule,
                         std::index_sequence<Index...>) noexcept
        : cores_{Core(shapes[Index], rule)...}
    {
    }

    std::array<Core, N> cores_;
};

/// What every core does for a batch: all blocks or none.
template <bool Throws, class Core, class Source>
bool allocate_all(Core& core, Source& source, std::span<void*> out) noexcept(!Throws)
{
    std::size_t count = 0;
    undo all([&] { core.deallocate_batch(source, out.first(count)); });
    for (; count < out.size(); ++count) {
        out[count] = core.template allocate<Throws>(source);
        if (out[count] == nullptr)
            return false;
    }
    all.keep();
    return true;
}

} // namespace mallard
