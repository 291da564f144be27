// Defines names for Mallard's memory resources. run.py replaces the standard names in the tests by
// these names.
#pragma once

#include <mallard/pmr.hpp>

namespace std::pmr {

struct mallard_arena : mallard::pmr::arena {
    using arena::arena;
};
struct mallard_multipool : mallard::pmr::multipool {
    using multipool::multipool;
};
struct mallard_shared_multipool : mallard::pmr::shared_multipool {
    using shared_multipool::shared_multipool;
};

} // namespace std::pmr
