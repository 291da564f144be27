// Helpers for segments: a unique name, and counters that processes share.
#pragma once

#include <mallard/persist/shared_memory.hpp>

#include "require.hpp"

#include <atomic>
#include <string>

#include <unistd.h>

namespace mallard::testing {

/// A unique segment name. The destructor removes the segment.
class segment_name {
public:
    explicit segment_name(const char* of) : text_("mallard-test-" + std::to_string(::getpid()) + of)
    {
        static_cast<void>(shared_memory::remove(text_));
    }
    ~segment_name() { static_cast<void>(shared_memory::remove(text_)); }
    segment_name(const segment_name&) = delete;
    segment_name& operator=(const segment_name&) = delete;

    operator std::string_view() const { return text_; }
    std::string path() const { return "/dev/shm/" + text_; }

private:
    std::string text_;
};

/// Returns `segment`. If it is not valid, prints the reason with the failing test.
inline shared_memory required(shared_memory segment)
{
    require(bool(segment), segment.last_failure());
    return segment;
}

/// A counter in memory that child processes share.
class common_number {
public:
    common_number() : segment_(required(shared_memory::anonymous(1)))
    {
        number_ = ::new (segment_.allocate({sizeof *number_})) std::atomic<int>(0);
    }
    std::atomic<int>& operator*() { return *number_; }

private:
    shared_memory segment_;
    std::atomic<int>* number_;
};

} // namespace mallard::testing
