// The counts of the library in count.c, in the file that MALLARD_BENCH_COUNT names.
#pragma once

#include <stdint.h>

/// Calls of one process. realloc of a block counts as one call: an allocation, or a free if it gave
/// no block because no bytes were asked for.
struct call_counts {
    uint64_t allocations; ///< that gave a block
    uint64_t frees;       ///< of a block, not of null
};
