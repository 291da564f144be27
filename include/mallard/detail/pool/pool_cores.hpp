// Which cores a pool or a multipool has: one kind for each `sync`.
#pragma once

#include <mallard/detail/pool/lazy_cores.hpp>
#include <mallard/detail/threads/cached_core.hpp>
#include <mallard/detail/threads/lock_free_core.hpp>
#include <mallard/detail/threads/locked_core.hpp>

namespace mallard {

template <pool_options Options, std::size_t N, sync Threads = Options.threads>
struct cores_for;

template <pool_options Options, std::size_t N>
struct cores_for<Options, N, sync::none> {
    static constexpr bool as_usual = Options.grow == multipool_options{}.grow &&
                                     Options.order != reuse::ordered &&
                                     Options.checks == check::off;
    using first = std::conditional_t<as_usual, starter, no_starter>;
    using type = lazy_cores<pool_core<Options>, N, growth_argument<Options.grow>, first>;
};
template <pool_options Options>
struct cores_for<Options, 1, sync::none> {
    using type = core_array<pool_core<Options>, 1>;
};
template <pool_options Options, std::size_t N>
struct cores_for<Options, N, sync::mutex> {
    using type = core_array<locked_core<Options>, N>;
};
template <pool_options Options, std::size_t N>
struct cores_for<Options, N, sync::lock_free> {
    static_assert(N == 1,
                  "a multipool grows, so it cannot be lock_free: use sync::thread_cached or "
                  "sync::mutex");
    using type = core_array<lock_free_core<Options>, N>;
};

template <pool_options Options, std::size_t N>
struct cores_for<Options, N, sync::thread_cached> {
    using type = cached_core<Options, N>;
};

template <pool_options Options, std::size_t N>
using pool_cores = typename cores_for<Options, N>::type;

} // namespace mallard
