// Random programs that every kind of pool must pass.
#pragma once

#include "seeds.hpp"

namespace mallard::testing {

template <class Kind, pool_options O>
void run_pools(std::size_t programs = 8)
{
    using pool = typename Kind::template pool<O>;
    run_programs(
        programs,
        [](failing_source& source, auto& choose) {
            std::size_t const bytes = choose(4) == 0 ? choose(5000) : choose(150);
            std::size_t const align = choose(2) == 0 ? 0 : std::size_t{1} << choose(13);
            return pool(bytes, align, ref<failing_source>(source));
        },
        mallard::saturating_add(O.grow.limit, Kind::cache_bytes));
}

template <class Kind>
class random_pool : public ::testing::Test {};
TYPED_TEST_SUITE_P(random_pool);

TYPED_TEST_P(random_pool, agrees_with_a_model_as_it_grows_by_default)
{
    run_pools<TypeParam, pool_options{}>();
}

TYPED_TEST_P(random_pool, agrees_with_a_model_in_small_chunks_with_a_small_array)
{
    run_pools<TypeParam,
              pool_options{.chunk = 1024, .grow = growth::fixed(1), .cached_bytes = 256}>();
}

TYPED_TEST_P(random_pool, agrees_with_a_model_in_steps_of_many_chunks)
{
    run_pools<TypeParam, pool_options{.chunk = 4096, .grow = growth::linear(8192, 12000)}>();
}

TYPED_TEST_P(random_pool, agrees_with_a_model_up_to_a_limit)
{
    run_pools<TypeParam,
              pool_options{.chunk = 4096, .grow = {.first = 5000, .num = 3, .limit = 100000}}>();
}

TYPED_TEST_P(random_pool, agrees_with_a_model_on_a_single_chunk)
{
    run_pools<TypeParam, pool_options{.grow = growth::none(50000)}>();
}

REGISTER_TYPED_TEST_SUITE_P(random_pool, agrees_with_a_model_as_it_grows_by_default,
                            agrees_with_a_model_in_small_chunks_with_a_small_array,
                            agrees_with_a_model_in_steps_of_many_chunks,
                            agrees_with_a_model_up_to_a_limit,
                            agrees_with_a_model_on_a_single_chunk);

} // namespace mallard::testing
