// Messages with which the player stops, and its exit statuses.
#pragma once

namespace mallard::replay {

/// The exit statuses of the player.
enum status : int {
    status_usage = 2,      ///< the arguments are wrong
    status_unreadable = 3, ///< the file is not an op stream, or is damaged
    status_refused = 125,  ///< the system refused memory, a thread or a system call
};

/// Writes a message of three lines to standard error and ends the process with the status `with`.
/// The first line, what happened, is made from `format` as by printf; then come the state of things
/// and what to type next. Allocates nothing, so that a replay that fails can call it.
[[noreturn, gnu::format(printf, 4, 5)]] void fail(status with, const char* state, const char* help,
                                                  const char* format, ...) noexcept;

} // namespace mallard::replay
