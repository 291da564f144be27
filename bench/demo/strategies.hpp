// Lists the fourteen strategies as values, for tables.
#pragma once

#include <bench/demo/strategy.hpp>

#include <array>
#include <cstddef>
#include <string_view>

namespace mallard::demo {

inline constexpr std::size_t strategy_count = 14;

// Two strategies use the heap. Each of the other families has four strategies.
enum class family { heap, arena, multipool, multipool_over_arena };

struct strategy_entry {
    int number = 0;
    std::string_view name, words;
    family from = family::heap;
    demo::binding binding = demo::binding::type_parameter;
    bool winks_out = false;
};

/// Returns all strategies, beginning with AS1 (the default heap).
inline const std::array<strategy_entry, strategy_count>& strategies()
{
    static auto const all = [] {
        std::array<strategy_entry, strategy_count> entries;
        for_each_strategy([&]<class S>(S) {
            constexpr int n = S::number;
            entries[n - 1] = {
                .number = n,
                .name = S::name,
                .words = S::words,
                .from = static_cast<family>((n + 1) / 4),
                .binding = S::binding,
                .winks_out = S::wink_out,
            };
        });
        return entries;
    }();
    return all;
}

} // namespace mallard::demo
