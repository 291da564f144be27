// Random programs that every kind of multipool must pass.
#pragma once

#include "seeds.hpp"

#include <mallard/arena.hpp>

namespace mallard::testing {

template <class Kind>
class random_multipool : public ::testing::Test {};
TYPED_TEST_SUITE_P(random_multipool);

TYPED_TEST_P(random_multipool, agrees_with_a_model)
{
    using source = ref<failing_source>;
    using multipool = typename TypeParam::template multipool<source>;
    run_programs(3, [](auto& from, auto&) { return multipool(source(from)); });
}

TYPED_TEST_P(random_multipool, agrees_with_a_model_on_an_arena)
{
    using arena = mallard::arena<ref<failing_source>>;
    using multipool = typename TypeParam::template multipool<arena>;
    run_programs(3, [](auto& from, auto&) { return multipool(arena(from)); });
}

TYPED_TEST_P(random_multipool, agrees_with_a_model_whatever_its_largest_class)
{
    using source = ref<failing_source>;
    using multipool = typename TypeParam::template multipool<source, 1000>;
    run_programs(3, [](auto& from, auto&) { return multipool(source(from)); });
    using small = typename TypeParam::template multipool<source, 88>;
    run_programs(3, [](auto& from, auto&) { return small(source(from)); });
}

REGISTER_TYPED_TEST_SUITE_P(random_multipool, agrees_with_a_model, agrees_with_a_model_on_an_arena,
                            agrees_with_a_model_whatever_its_largest_class);

} // namespace mallard::testing
