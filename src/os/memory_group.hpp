// The limit of memory that a process shares with others: its control group (cgroup v2).
#pragma once

#include <cstddef>

namespace mallard::os {

/// The nearest group with a limit, of this process or around that. Found once; without one, or
/// where nothing can be read, it is one that never is short. Nothing stays open between calls, no
/// call allocates, changes errno, or minds a refusal.
class memory_group {
public:
    /// `own` says the path of this process's group below `mount`.
    void find(const char* own = "/proc/self/cgroup", const char* mount = "/sys/fs/cgroup") noexcept;

    /// More than 85 % of the limit is in use, not counting files that were read and that the
    /// system can drop: some microseconds.
    bool is_short() const noexcept;

    bool is_known() const noexcept { return folder_[0] != '\0'; }

private:
    static constexpr std::size_t path_bytes = 512;

    std::size_t number_in(const char* file, const char* before = "") const noexcept;

    char folder_[path_bytes] = ""; ///< ends with a slash; empty: there is none
};

} // namespace mallard::os
