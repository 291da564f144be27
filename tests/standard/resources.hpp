// Gives Mallard's memory resources the names that run.py writes into the tests instead of the
// standard names.
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
