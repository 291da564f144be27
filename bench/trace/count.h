// The counts of the library in count.c, in the file that MALLARD_BENCH_COUNT names.
#pragma once

#include <stdint.h>

/// Calls of one process. realloc of a block counts as a free and an allocation.
struct call_counts {
    uint64_t allocations; ///< that gave a block
    uint64_t frees;       ///< of a block, not of null
};
