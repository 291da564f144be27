#include "multipool_programs.hpp"

namespace mallard::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(of_several_threads, random_multipool, growing_kinds, kind_names);

} // namespace mallard::testing
