// The memory limit of the control group (cgroup v2) that this process belongs to.
#pragma once

#include <cstddef>

namespace mallard::os {

/// The memory limit of this process's control group, or of the nearest enclosing group that has a
/// limit, in bytes. 0: there is no limit, or /proc or /sys cannot be read. `own` is the file with
/// the path of the group, and `mount` the directory of all groups. Opens, reads and closes some
/// files, so a process in a sandbox must not call this. Neither allocates nor changes errno.
std::size_t memory_limit_of_group(const char* own = "/proc/self/cgroup",
                                  const char* mount = "/sys/fs/cgroup") noexcept;

} // namespace mallard::os
