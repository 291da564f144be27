// The handlers of fork: see guests.hpp for what they do.
#pragma once

namespace mallard::engine {

/// Whether a fork by this thread takes the engine's locks. In a process with one thread, a fork
/// needs no locks. In a signal handler that interrupted code inside a lock, or code that waits for
/// a lock, a fork would deadlock on the locks. The child of such a fork may call only functions
/// that a signal handler may call.
bool can_take_locks() noexcept;

} // namespace mallard::engine
