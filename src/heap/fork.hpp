// The fork handlers. guests.hpp describes what they do.
#pragma once

namespace mallard::engine {

/// Returns whether a fork by this thread locks the engine's locks. In a process with one thread, a
/// fork needs no locks. In a signal handler that interrupted code which holds a lock or waits for a
/// lock, a fork would deadlock. The child of such a fork may call only functions that a signal
/// handler may call.
bool can_take_locks() noexcept;

} // namespace mallard::engine
