// The handlers of fork: see guests.hpp for what they do.
#pragma once

namespace mallard::engine {

/// Whether a fork by this thread takes the engine's locks. In a process with one thread no other
/// thread holds a lock, so a fork takes none. A fork in a signal handler takes none either if the
/// handler has interrupted its thread holding a lock or waiting for one: that fork would deadlock
/// with itself. The child of such a fork may call only what a signal handler may.
bool can_take_locks() noexcept;

} // namespace mallard::engine
