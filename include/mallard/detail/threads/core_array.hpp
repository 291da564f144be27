// The pools of a multipool for several threads, each with a separate lock.
#pragma once

#include <mallard/detail/pool/pool_core.hpp>

#include <array>

namespace mallard {

/// An array with a `Core` for each of `N` size classes.
template <class Core, std::size_t N>
class core_array {
public:
    /// Returns how many bytes a source must have for one block of this shape.
    static constexpr std::size_t bytes_for_one(slot_shape shape) noexcept
    {
        return bytes_at_any_address(Core::least_chunk(shape));
    }

    template <class Rule>
    constexpr core_array(const std::array<slot_shape, N>& shapes, Rule rule) noexcept
        : core_array(shapes, rule, std::make_index_sequence<N>())
    {
    }

    template <bool Throws, class Source>
    [[gnu::always_inline]] void* allocate(Source& source, std::size_t i) noexcept(!Throws)
    {
        return cores_[i].template allocate<Throws>(source);
    }
    template <class Source>
    [[gnu::always_inline]] void deallocate(Source& source, void* block, std::size_t i) noexcept
    {
        cores_[i].deallocate(source, block);
    }

    bool owns(const void* p) const noexcept
    {
        return std::any_of(cores_.begin(), cores_.end(), [p](auto& core) { return core.owns(p); });
    }
    /// Returns whether `p` points into a chunk of size class `i`.
    bool owns(const void* p, std::size_t i) const noexcept { return cores_[i].owns(p); }
    validity classify(const void* p) const noexcept
    {
        for (auto const& core : cores_)
            if (validity const answer = core.classify(p); answer != validity::miss)
                return answer;
        return validity::miss;
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

} // namespace mallard
