// The handlers of fork: see guests.hpp for what they do.
#pragma once

namespace mallard::engine {

/// Whether a fork by this thread takes the engine's locks. In a process with one thread no other
/// thread holds a lock, so a fork takes none. A fork in a signal handler takes no lock either if
/// the handler interrupted its thread while that thread held a lock or waited for one: the fork
/// would deadlock with its own thread. The child of such a fork may call only functions that a
/// signal handler may call.
bool can_take_locks() noexcept;

} // namespace mallard::engine
