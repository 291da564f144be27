// Reads the memory limit of the control group (cgroup v2) that this process belongs to.
#pragma once

#include <cstddef>

namespace mallard::os {

/// Returns the memory limit of this process's control group, or of the nearest enclosing group that
/// has a limit, in bytes. Returns 0 if there is no limit, or if /proc or /sys cannot be read. `own`
/// is the file that contains the path of the group, and `mount` the directory of all groups. The
/// function opens, reads and closes files, so a process in a sandbox must not call it. The function
/// neither allocates nor changes errno.
std::size_t memory_limit_of_group(const char* own = "/proc/self/cgroup",
                                  const char* mount = "/sys/fs/cgroup") noexcept;

} // namespace mallard::os
