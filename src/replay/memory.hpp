// Memory that the replayer (mallard-replay) uses itself, and that does not come from malloc.
#pragma once

#include "../os/memory.hpp"
#include "failure.hpp"

#include <cstddef>
#include <utility>

namespace mallard::replay {

constexpr std::size_t page_bytes = 4096;

/// Writes to each page, so that page faults in the replayer's own memory happen before the
/// measurement starts.
inline void touch_own(std::byte* at, std::size_t bytes) noexcept
{
    for (std::size_t i = 0; i < bytes; i += page_bytes)
        *const_cast<volatile std::byte*>(at + i) = std::byte{0};
}

/// Maps zeroed memory. Ends the process if that fails.
inline std::byte* map_or_fail(std::size_t bytes, const char* what) noexcept
{
    std::byte* const at = os::map(bytes);
    if (at == nullptr)
        fail(status_refused, "nothing was replayed",
             "free memory, or raise the limit of the process: ulimit -v unlimited",
             "the system could not allocate %zu KiB for %s", bytes / 1024, what);
    return at;
}

/// A table of zeroed elements outside of malloc's memory.
template <class T>
class table {
public:
    table() noexcept = default;
    /// Makes a table of `count` elements. `what` names the elements in the error message if there
    /// is no memory.
    table(std::size_t count, const char* what) noexcept
        : bytes_((count * sizeof(T) + page_bytes - 1) / page_bytes * page_bytes), count_(count),
          at_(count == 0 ? nullptr : reinterpret_cast<T*>(map_or_fail(bytes_, what)))
    {
    }
    table(table&& other) noexcept
        : bytes_(std::exchange(other.bytes_, 0)), count_(std::exchange(other.count_, 0)),
          at_(std::exchange(other.at_, nullptr))
    {
    }
    table& operator=(table&& other) noexcept
    {
        std::swap(bytes_, other.bytes_);
        std::swap(count_, other.count_);
        std::swap(at_, other.at_);
        return *this;
    }
    ~table()
    {
        if (at_ != nullptr)
            os::unmap(reinterpret_cast<std::byte*>(at_), bytes_);
    }

    T* data() const noexcept { return at_; }
    T& operator[](std::size_t i) const noexcept { return at_[i]; }
    std::size_t count() const noexcept { return count_; } ///< number of elements
    std::size_t bytes() const noexcept { return bytes_; } ///< size of the table in whole pages
    T* begin() const noexcept { return at_; }
    T* end() const noexcept { return at_ + count_; }

    /// Touches all pages, so that later accesses cause no page faults.
    void touch() const noexcept { touch_own(reinterpret_cast<std::byte*>(at_), bytes_); }

private:
    std::size_t bytes_ = 0;
    std::size_t count_ = 0;
    T* at_ = nullptr;
};

} // namespace mallard::replay
