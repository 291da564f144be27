// Every kind of pool, for typed tests that hold for all kinds.
#pragma once

#include "sources.hpp"

#include <mallard/multipool.hpp>
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

#include <gtest/gtest.h>

namespace mallard::testing {

/// The order, check and sync of a pool. A test chooses the other options:
///
/// typename TypeParam::template pool<pool_options{.grow = growth::none(4096)}> blocks(48, 0, heap);
template <reuse Order, check Checks, sync Threads = sync::none>
struct kind {
    static constexpr reuse order = Order;
    static constexpr check checks = Checks;
    static constexpr sync threads = Threads;
    /// Bytes that the cache and the array of one thread may use beyond a limit.
    static constexpr std::size_t cache_bytes = Threads == sync::thread_cached ? 10000 : 0;

    static constexpr pool_options of(pool_options o)
    {
        o.order = Order;
        o.checks = Checks;
        o.threads = Threads;
        // A lock-free pool does not grow, so it gets one chunk with room for all blocks that a test
        // allocates.
        if (Threads == sync::lock_free && !o.grow.is_single() && !o.grow.is_at_run_time())
            o.grow =
                growth::none(o.grow.limit != growth{}.limit ? o.grow.limit : std::size_t{1} << 24);
        return o;
    }

    template <pool_options O = pool_options{}, source S = ref<failing_source>>
    using pool = mallard::pool<S, of(O)>;

    template <source S = ref<failing_source>, std::size_t Largest = 4096>
    using multipool = mallard::multipool<
        S, multipool_options{
               .largest = Largest, .threads = Threads, .order = Order, .checks = Checks}>;
};

using kinds = ::testing::Types<kind<reuse::lifo, check::off>, kind<reuse::lifo, check::on>,
                               kind<reuse::ordered, check::off>, kind<reuse::ordered, check::on>>;

/// Pools with a FIFO list. tests/unit/pool_order.cpp tests the order itself.
using queue_kinds = ::testing::Types<kind<reuse::fifo, check::off>, kind<reuse::fifo, check::on>,
                                     kind<reuse::fifo, check::off, sync::mutex>>;

/// Kinds of pools that several threads share and that may grow. Only `sync::mutex` supports several
/// orders.
using growing_kinds = ::testing::Types<kind<reuse::lifo, check::on, sync::mutex>,
                                       kind<reuse::ordered, check::off, sync::mutex>,
                                       kind<reuse::ordered, check::off, sync::thread_cached>,
                                       kind<reuse::ordered, check::on, sync::thread_cached>>;

/// All kinds of pools that several threads share.
using shared_kinds = ::testing::Types<kind<reuse::lifo, check::on, sync::mutex>,
                                      kind<reuse::ordered, check::off, sync::mutex>,
                                      kind<reuse::ordered, check::off, sync::lock_free>,
                                      kind<reuse::ordered, check::on, sync::lock_free>,
                                      kind<reuse::ordered, check::off, sync::thread_cached>,
                                      kind<reuse::ordered, check::on, sync::thread_cached>>;

struct kind_names {
    template <class Kind>
    static std::string GetName(int)
    {
        constexpr std::string_view modes[] = {"", "mutex_", "lock_free_", "cached_"};
        constexpr const char* orders[] = {"lifo", "ordered", "fifo"};
        return std::string(modes[static_cast<std::size_t>(Kind::threads)]) +
               orders[static_cast<std::size_t>(Kind::order)] +
               (Kind::checks == check::on ? "_checked" : "");
    }
};

} // namespace mallard::testing
