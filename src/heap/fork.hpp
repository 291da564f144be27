// The handlers of fork: see guests.hpp for what they do.
#pragma once

namespace mallard::engine {

/// Whether a fork by this thread takes the engine's locks. In a process with one thread, a fork
/// needs no locks. In a signal handler that interrupted this thread while the thread held a lock or
/// waited for one, taking locks would deadlock: the child of such a fork may call only functions
/// that a signal handler may call.
bool can_take_locks() noexcept;

} // namespace mallard::engine
