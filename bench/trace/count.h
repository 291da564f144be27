// The counts of the library in count.c, in the file that MALLARD_BENCH_COUNT names.
#pragma once

#include <stdint.h>

/// Calls of one process. A realloc of a block counts once: as an allocation, or as a free if it
/// returned null because the new size is 0.
struct call_counts {
    uint64_t allocations; ///< calls that returned a block
    uint64_t frees;       ///< frees of a block; free(NULL) does not count
};
