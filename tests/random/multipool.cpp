#include "seeds.hpp"

#include <mallard/arena.hpp>

namespace {

using namespace mallard::testing;
using mallard::ref;

template <class Kind>
class random_multipool : public ::testing::Test {};
TYPED_TEST_SUITE(random_multipool, kinds, kind_names);

TYPED_TEST(random_multipool, agrees_with_a_model)
{
    using source = ref<failing_source>;
    using multipool = typename TypeParam::template multipool<source>;
    run_programs(3, [](auto& from, auto&) { return multipool(source(from)); });
}

TYPED_TEST(random_multipool, agrees_with_a_model_on_an_arena)
{
    using arena = mallard::arena<ref<failing_source>>;
    using multipool = typename TypeParam::template multipool<arena>;
    run_programs(3, [](auto& from, auto&) { return multipool(arena(from)); });
}

TYPED_TEST(random_multipool, agrees_with_a_model_whatever_its_largest_class)
{
    using source = ref<failing_source>;
    using multipool = typename TypeParam::template multipool<source, 1000>;
    run_programs(3, [](auto& from, auto&) { return multipool(source(from)); });
    using small = typename TypeParam::template multipool<source, 88>;
    run_programs(3, [](auto& from, auto&) { return small(source(from)); });
}

} // namespace
