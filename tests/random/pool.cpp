#include "seeds.hpp"

namespace {

using namespace mallard::testing;
using mallard::growth;
using mallard::pool_options;
using mallard::ref;

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
        O.grow.limit);
}

template <class Kind>
class random_pool : public ::testing::Test {};
TYPED_TEST_SUITE(random_pool, kinds, kind_names);

TYPED_TEST(random_pool, agrees_with_a_model_as_it_grows_by_default)
{
    run_pools<TypeParam, pool_options{}>();
}

TYPED_TEST(random_pool, agrees_with_a_model_in_small_chunks_with_a_small_array)
{
    run_pools<TypeParam,
              pool_options{.chunk = 1024, .grow = growth::fixed(1), .cached_bytes = 256}>();
}

TYPED_TEST(random_pool, agrees_with_a_model_in_steps_of_many_chunks)
{
    run_pools<TypeParam, pool_options{.chunk = 4096, .grow = growth::linear(8192, 12000)}>();
}

TYPED_TEST(random_pool, agrees_with_a_model_up_to_a_limit)
{
    run_pools<TypeParam,
              pool_options{.chunk = 4096, .grow = {.first = 5000, .num = 3, .limit = 100000}}>();
}

TYPED_TEST(random_pool, agrees_with_a_model_on_a_single_chunk)
{
    run_pools<TypeParam, pool_options{.grow = growth::none(50000)}>();
}

} // namespace
