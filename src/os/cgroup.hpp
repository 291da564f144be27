// The memory limit of the control group (cgroup v2) that this process belongs to.
#pragma once

#include <cstddef>

namespace mallard::os {

/// The control group whose memory limit applies to this process: the process's own group, or the
/// nearest enclosing group that has a limit. `find` looks the group up once. If there is no limit,
/// or /proc or /sys cannot be read, `is_short` always returns false. No file stays open between
/// calls. No call allocates or changes errno.
class cgroup {
public:
    /// Looks the group up. The file `own` holds the path of this process's group below `mount`.
    void find(const char* own = "/proc/self/cgroup", const char* mount = "/sys/fs/cgroup") noexcept;

    /// Whether more than 85 % of the limit is in use. The page cache that the system can drop
    /// (`inactive_file`) does not count. Reads three files, which takes some microseconds.
    bool is_short() const noexcept;

    bool is_known() const noexcept { return folder_[0] != '\0'; }

private:
    static constexpr std::size_t path_bytes = 512;

    std::size_t number_in(const char* file, const char* before = "") const noexcept;

    char folder_[path_bytes] = ""; ///< ends with a slash; empty: no group with a limit was found
};

} // namespace mallard::os
