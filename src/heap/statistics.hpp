// What the engine has, counted when somebody asks: nothing is counted on the way of a call.
#pragma once

#include "slab_map.hpp"

#include <mallard/detail/base/text.hpp>

namespace mallard::engine {

/// Of the classes and of what is above them. While other threads are at work, numbers are of
/// slightly different moments.
struct class_statistics {
    std::size_t bytes = 0;  ///< of a block
    std::size_t live = 0;   ///< blocks with callers
    std::size_t cached = 0; ///< in the lists of threads
    std::size_t slabs = 0;  ///< or spans
};

struct heap_statistics {
    std::size_t blocks_live = 0;
    std::size_t bytes_live = 0;   ///< their usable sizes
    std::size_t bytes_cached = 0; ///< in the lists of threads
    std::size_t bytes_taken = 0;  ///< from the system, mapped blocks included
    std::size_t bytes_taken_max = 0;
    std::size_t bytes_idle = 0;     ///< free, and not given back
    std::size_t bytes_returned = 0; ///< to the system, since the start
    std::size_t large_blocks = 0;
    std::size_t large_bytes = 0;
    std::size_t threads = 0; ///< that have had a block; those that ended are counted until another
                             ///< takes their place
    class_statistics classes[classed_count];
};

[[gnu::cold]] void collect_statistics(heap_statistics& s) noexcept;

/// One line a class, and the sums.
[[gnu::cold]] void write_text(const heap_statistics& s, text_writer& out) noexcept;
[[gnu::cold]] void write_json(const heap_statistics& s, text_writer& out) noexcept;

} // namespace mallard::engine
