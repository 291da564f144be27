// A counter of events on slow paths.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

#include <cstddef>
#include <utility>

namespace mallard {

/// Counts events on slow paths. A move transfers the count, and leaves 0 in the source.
class event_count {
public:
    constexpr event_count() noexcept = default;
    constexpr event_count(event_count&& other) noexcept : count_(std::exchange(other.count_, 0)) {}
    constexpr event_count& operator=(event_count&& other) noexcept
    {
        count_ = std::exchange(other.count_, 0);
        return *this;
    }

    constexpr event_count& operator++() noexcept
    {
        count_ += 1;
        return *this;
    }
    constexpr operator std::size_t() const noexcept { return count_; }

private:
    std::size_t count_ = 0;
};

/// The counter of an event that cannot happen. Its value is always 0.
struct no_events {
    constexpr operator std::size_t() const noexcept { return 0; }
};

} // namespace mallard
