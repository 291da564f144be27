#include "pool_programs.hpp"

namespace mallard::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(of_several_threads, random_pool, shared_kinds, kind_names);

} // namespace mallard::testing
