// Statistics of the engine. The statistics are computed on request, so that allocation maintains no
// counters for them.
#pragma once

#include "classes.hpp"

#include <mallard/detail/base/text.hpp>

namespace mallard::engine {

/// Statistics of one size class. While other threads allocate, the numbers are read at slightly
/// different moments.
struct class_statistics {
    std::size_t bytes = 0;  ///< usable bytes of a block
    std::size_t live = 0;   ///< number of blocks in use by the program
    std::size_t cached = 0; ///< number of free blocks in the lists of threads
    std::size_t slabs = 0;  ///< number of slabs or spans
};

struct heap_statistics {
    std::size_t blocks_live = 0;
    std::size_t bytes_live = 0;   ///< usable bytes of the live blocks
    std::size_t bytes_cached = 0; ///< usable bytes of the cached blocks
    std::size_t bytes_taken = 0;  ///< memory from the system, including large blocks
    std::size_t bytes_taken_max = 0;
    std::size_t bytes_idle = 0;     ///< free memory that was not returned to the system
    std::size_t bytes_returned = 0; ///< memory returned to the system since the start
    std::size_t large_blocks = 0;
    std::size_t large_bytes = 0;
    std::size_t threads = 0; ///< thread caches, including abandoned ones of exited threads
    class_statistics classes[classed_count];
};

[[gnu::cold]] void collect_statistics(heap_statistics& s) noexcept;

/// Writes the sums, and a line for each class in use.
[[gnu::cold]] void write_text(const heap_statistics& s, text_writer& out) noexcept;
[[gnu::cold]] void write_json(const heap_statistics& s, text_writer& out) noexcept;

} // namespace mallard::engine
