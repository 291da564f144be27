// The fork handlers. guests.hpp describes what they do.
#pragma once

namespace mallard::engine {

/// Returns whether a fork by this thread locks the engine's locks. In a process with one thread, a
/// fork needs no locks. A signal handler may have interrupted code that holds a lock or waits for a
/// lock. If the handler forks, locking would deadlock, so that fork locks nothing. The child of
/// such a fork may call only functions that a signal handler may call.
bool can_take_locks() noexcept;

} // namespace mallard::engine
