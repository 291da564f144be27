// Every kind of pool, for tests that hold for all of them.
#pragma once

#include "sources.hpp"

#include <mallard/multipool.hpp>
#include <mallard/pool.hpp>

#include <gtest/gtest.h>

namespace mallard::testing {

/// An order and whether it is checked. The rest of the options is the test's:
///
///     typename TypeParam::template pool<pool_options{.grow = growth::none(4096)}> blocks(48, 0,
///     heap);
template <reuse Order, check Checks>
struct kind {
    static constexpr reuse order = Order;
    static constexpr check checks = Checks;

    static constexpr pool_options of(pool_options o)
    {
        o.order = Order;
        o.checks = Checks;
        return o;
    }

    template <pool_options O = pool_options{}, source S = ref<failing_source>>
    using pool = mallard::pool<S, of(O)>;

    template <source S = ref<failing_source>, std::size_t Largest = 4096>
    using multipool =
        mallard::multipool<S,
                           multipool_options{.largest = Largest, .order = Order, .checks = Checks}>;
};

using kinds = ::testing::Types<kind<reuse::lifo, check::off>, kind<reuse::lifo, check::on>,
                               kind<reuse::ordered, check::off>, kind<reuse::ordered, check::on>>;

struct kind_names {
    template <class Kind>
    static std::string GetName(int)
    {
        return std::string(Kind::order == reuse::lifo ? "lifo" : "ordered") +
               (Kind::checks == check::on ? "_checked" : "");
    }
};

} // namespace mallard::testing
