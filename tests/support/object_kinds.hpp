// The kinds of object_pool for typed tests: one or two kinds for each option.
#pragma once

#include "sources.hpp"

#include <mallard/object_pool.hpp>
#include <mallard/sync.hpp>

#include <gtest/gtest.h>

namespace mallard::testing {

/// The options of an object_pool. A test chooses the type of the objects:
///
///     typename TypeParam::template pool<citizen> objects(heap);
template <object_pool_options Options>
struct object_kind {
    static constexpr object_pool_options options = Options;

    template <class T, class Hooks = no_hooks>
    using pool = object_pool<T, ref<failing_source>, Options, Hooks>;
};

inline constexpr growth one_step = growth::none(1 << 20);

using unshared_objects = object_kind<object_pool_options{.order = reuse::lifo}>;
using local_objects =
    object_kind<object_pool_options{.counts = counts::local, .checks = check::on}>;
using single_chunk_objects = object_kind<object_pool_options{
    .counts = counts::local, .grow = one_step, .order = reuse::lifo}>;
using locked_objects = object_kind<object_pool_options{
    .counts = counts::shared, .grow = one_step, .threads = sync::mutex, .checks = check::on}>;
using lock_free_objects = object_kind<object_pool_options{
    .counts = counts::shared, .grow = one_step, .threads = sync::lock_free, .checks = check::on}>;
using cached_objects =
    object_kind<object_pool_options{.counts = counts::shared, .threads = sync::thread_cached}>;

using object_kinds = ::testing::Types<unshared_objects, local_objects, single_chunk_objects,
                                      locked_objects, lock_free_objects, cached_objects>;
using shared_object_kinds =
    ::testing::Types<local_objects, single_chunk_objects, locked_objects, cached_objects>;

struct object_kind_names {
    template <class Kind>
    static std::string GetName(int)
    {
        constexpr object_pool_options o = Kind::options;
        constexpr std::string_view modes[] = {"", "mutex_", "lock_free_", "cached_"};
        constexpr std::string_view shares[] = {"unshared", "local", "shared"};
        return std::string(modes[static_cast<std::size_t>(o.threads)]) +
               std::string(shares[static_cast<std::size_t>(o.counts)]) +
               (o.grow.is_single() ? "_single" : "") + (o.checks == check::on ? "_checked" : "");
    }
};

} // namespace mallard::testing
