// Runs one contender in a separate process, so that all memory of that process belongs to the
// contender.
#pragma once

#include <bench/harness.hpp>

#include <sys/types.h>

namespace mallard::bench {

/// Identifies an experiment and a contender.
struct child_task {
    std::string_view suite;
    std::size_t experiment = 0;
    std::size_t entrant = 0;
};

class running_child {
public:
    running_child(pid_t process, int output) noexcept : process_(process), output_(output) {}

    child_result wait();

private:
    pid_t process_;
    int output_;
};

running_child start_child(child_task, effort);

} // namespace mallard::bench
