// Attaches a process and its threads to the ring, and writes the records that identify them.
#pragma once

#include "thread.hpp"

namespace mallard::record {

/// Returns the process ID of this process, as the records contain it.
std::uint32_t system_process() noexcept;

/// Returns whether the command that owns the ring has exited. If the command has exited, recording
/// ends in this process, too.
bool command_has_ended() noexcept;

/// Starts to record this process, which runs already, into a ring. Returns an attach_status. The
/// calling thread writes the record that announces the process. `process` is the process ID of this
/// process in the command's PID namespace. `of_command` is the process ID of the command, or 0 if
/// the command is not visible to this process.
std::int32_t attach_running(int ring_file, std::uint32_t process, pid_t of_command) noexcept;

/// Ends the recording that `attach_running` has started. Waits for threads that are writing an
/// event. Then replaces the pages of the ring by private pages, because a thread may still write to
/// them if a signal handler has left a hook by a jump.
void leave_ring() noexcept;

// --- segments.cpp ---

/// Seals the segment of the thread, if it has one.
void seal(thread_state& t) noexcept;

constexpr std::size_t text_bytes_max = 4608;

/// Appends a record with a text of at most `text_bytes_max` bytes. Waits while the ring is full,
/// for any value of `on_full`, because a reader needs these records.
void append_text(thread_state& t, mallard_trace_record record, const char* text,
                 std::size_t bytes) noexcept;

// --- environment.cpp ---

/// Returns the value of the variable MALLARD_RING in the environment that the kernel passed to the
/// program, or null if the variable is not set.
char* find_ring_variable() noexcept;

/// Removes MALLARD_RING and the recorder's entry of LD_PRELOAD from the environment, so that the
/// programs that this program starts are not recorded.
void clear_environment() noexcept;

// --- handover.cpp ---

constexpr std::size_t socket_name_length = 5;
constexpr std::size_t token_length = 32;

/// Returns a descriptor of the ring, which the command sends over its socket to a process that
/// sends the token. Returns -1 on failure. Sets `command` to the process ID of the command, or to 0
/// if the command is not visible to this process.
int receive_ring(const char* name, const char* token, pid_t& command) noexcept;

/// Receives a descriptor from the other side of a connected socket. Returns -1 on failure.
int receive_descriptor(int socket) noexcept;

// --- modules.cpp ---

/// Appends the record of this process. `how` is start, attach, fork or exec. `process_before` is
/// the number of the process that forked this process or executed this program, or 0.
void append_process(thread_state& t, const char* how, std::uint32_t process_before) noexcept;

/// Appends records of all loaded modules.
void append_modules(thread_state& t) noexcept;

/// Appends records of the module whose first segment is mapped at `begin`.
void append_new_module(std::uintptr_t begin, const char* path) noexcept;

} // namespace mallard::record
