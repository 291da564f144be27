// Pools and multipools for several threads: the modes `sync::mutex`, `sync::lock_free` and
// `sync::thread_cached`. `thread_cached` needs the compiled library; the other two are header-only.
#pragma once

#include <mallard/detail/threads/cached_core.hpp>
#include <mallard/detail/threads/core_array.hpp>
#include <mallard/detail/threads/lock_free_core.hpp>
#include <mallard/detail/threads/locked_core.hpp>

namespace mallard {

/// The members that all modes for several threads have in common.
struct shared_pool_mode {
    /// The type of a pool's source, which is wrapped in a lock unless any thread may call the
    /// source.
    template <source Source>
    using source_of = shared_source<Source>;
    using mutex = std::mutex; ///< the lock of the list of large blocks
};

/// The types from which pools behind a lock are built.
template <>
struct pool_mode<sync::mutex> : shared_pool_mode {
    /// The type of a pool for one block size.
    template <pool_options Options>
    using core = locked_core<Options>;
    /// The type of the pools of a multipool.
    template <pool_options Options, std::size_t N, bool HasSlabs>
    using cores = core_array<locked_core<Options>, N>;
};

/// The types from which pools with one chunk and without a lock are built.
template <>
struct pool_mode<sync::lock_free> : shared_pool_mode {
    /// The type of a pool for one block size.
    template <pool_options Options>
    using core = lock_free_core<Options>;
    /// Does not compile for a multipool, because a multipool grows.
    template <pool_options Options, std::size_t N, bool HasSlabs>
    struct cores {
        static_assert(N == 0, "a multipool grows, so it cannot be lock_free: use "
                              "sync::thread_cached or sync::mutex");
    };
};

/// The types from which pools with a cache for each thread are built.
template <>
struct pool_mode<sync::thread_cached> : shared_pool_mode {
    /// The type of a pool for one block size.
    template <pool_options Options>
    using core = cached_core<Options, 1>;
    /// The type of the pools of a multipool.
    template <pool_options Options, std::size_t N, bool HasSlabs>
    using cores = cached_core<Options, N>;

    /// Returns the lock that guards the source, or null.
    template <class SharedSource>
    static constexpr std::mutex* mutex_of(SharedSource& source) noexcept
    {
        return mallard::mutex_of(source);
    }
};

} // namespace mallard
