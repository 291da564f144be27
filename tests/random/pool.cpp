#include "pool_programs.hpp"

namespace mallard::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(of_one_thread, random_pool, kinds, kind_names);

} // namespace mallard::testing
