#include "pool_programs.hpp"

namespace mallard::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(of_one_thread, random_pool, kinds, kind_names);
INSTANTIATE_TYPED_TEST_SUITE_P(in_a_queue, random_pool, queue_kinds, kind_names);

} // namespace mallard::testing
