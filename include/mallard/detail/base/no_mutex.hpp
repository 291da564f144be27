// A mutex that does nothing.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

namespace mallard {

/// A mutex without effect, for an allocator that only one thread uses at a time.
struct no_mutex {
    static constexpr void lock() noexcept {}
    static constexpr void unlock() noexcept {}
};

} // namespace mallard
