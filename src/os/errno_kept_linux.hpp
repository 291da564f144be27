// Keeps errno unchanged across system calls.
#pragma once

#include <cerrno>

namespace mallard::os {

/// Restores errno at the end of the scope, because a malloc or free that succeeds must not change
/// errno.
class errno_kept {
public:
    errno_kept() noexcept : before_(errno) {}
    errno_kept(const errno_kept&) = delete;
    errno_kept& operator=(const errno_kept&) = delete;
    ~errno_kept() { errno = before_; }

private:
    int before_;
};

} // namespace mallard::os
