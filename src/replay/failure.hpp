// The exit statuses of the replayer, and a function that prints an error message and ends the
// process.
#pragma once

namespace mallard::replay {

/// The exit statuses of the replayer if it fails.
enum status : int {
    status_usage = 2,      ///< the arguments are invalid
    status_unreadable = 3, ///< the file is not an op stream, or is corrupt
    status_refused = 125,  ///< no memory, no thread, or a failed system call
};

/// Writes a message of three lines to standard error, and ends the process with the status `with`.
/// The first line describes the error, and is formatted from `format` as by printf. The second line
/// is `state`, and the third line is `help`. This function does not allocate, so that a replay that
/// runs out of memory can call it.
[[noreturn, gnu::format(printf, 4, 5)]] void fail(status with, const char* state, const char* help,
                                                  const char* format, ...) noexcept;

} // namespace mallard::replay
