// The contenders in the benchmarks of J. Lakos ("Local ('arena') memory allocators", ACCU 2017):
// every allocator, with its library and its strategies AS1 to AS14. From AS3 on, strategies with
// even numbers wink out: they free all memory without running destructors.
#pragma once

#include <bench/lab/memories.hpp>

#include <string_view>

namespace mallard::bench::lab {

/// What one process measures: a library and one of the strategies.
struct part {
    std::string_view library; ///< "heap": the malloc of the process; "mallard/reset": a variant
                              ///< that Lakos did not measure
    int strategy = 1;

    bool operator==(part const&) const = default;
    bool winks_out() const noexcept { return strategy > 2 && strategy % 2 == 0; }
    bool has_monotonic() const noexcept { return (strategy > 2 && strategy < 7) || strategy > 10; }
};

// Calls f.template operator()<Memory>(part) for each strategy. There is one function for each type
// of allocator, so that each function can be in a separate translation unit.

template <class F>
void cast_heap(F f)
{
    f.template operator()<heap_typed>(part{"heap", 1});
}

template <class F>
void cast_arena(F f)
{
    f.template operator()<mallard_typed<arena<>>>(part{"mallard", 3});
    f.template operator()<mallard_typed<arena<>>>(part{"mallard", 4});
}

template <class F>
void cast_multipool(F f)
{
    f.template operator()<mallard_typed<multipool<>>>(part{"mallard", 7});
    f.template operator()<mallard_typed<multipool<>>>(part{"mallard", 8});
}

template <class F>
void cast_multipool_over_arena(F f)
{
    f.template operator()<mallard_typed<multipool<arena<>>>>(part{"mallard", 11});
    f.template operator()<mallard_typed<multipool<arena<>>>>(part{"mallard", 12});
}

template <class Library, class F>
void cast_resources(std::string_view name, F f)
{
    f.template operator()<monotonic_of<Library>>(part{name, 5});
    f.template operator()<monotonic_of<Library>>(part{name, 6});
    f.template operator()<pool_of<Library>>(part{name, 9});
    f.template operator()<pool_of<Library>>(part{name, 10});
    f.template operator()<pool_over_monotonic_of<Library>>(part{name, 13});
    f.template operator()<pool_over_monotonic_of<Library>>(part{name, 14});
}

template <class F>
void cast_abstract_base(F f)
{
    f.template operator()<heap_based>(part{"heap", 2});
    f.template operator()<mallard_based<arena<>>>(part{"mallard", 5});
    f.template operator()<mallard_based<arena<>>>(part{"mallard", 6});
    f.template operator()<mallard_based<multipool<>>>(part{"mallard", 9});
    f.template operator()<mallard_based<multipool<>>>(part{"mallard", 10});
    f.template operator()<mallard_based<multipool<arena<>>>>(part{"mallard", 13});
    f.template operator()<mallard_based<multipool<arena<>>>>(part{"mallard", 14});
    cast_resources<of_std>("libstdc++", f);
}

template <class F>
void cast_boost(F f)
{
    cast_resources<of_boost>("boost", f);
}

/// Calls `f` for foonathan's strategies. The pools allocate large requests from the heap, so they
/// cannot be winked out.
template <class F>
void cast_foonathan(F f)
{
    f.template operator()<foonathan_stack>(part{"foonathan", 3});
    f.template operator()<foonathan_stack>(part{"foonathan", 4});
    f.template operator()<foonathan_pools>(part{"foonathan", 7});
}

template <class F>
void cast_all(F f)
{
    cast_heap(f);
    cast_arena(f);
    cast_multipool(f);
    cast_multipool_over_arena(f);
    cast_abstract_base(f);
    cast_boost(f);
    cast_foonathan(f);
}

} // namespace mallard::bench::lab
