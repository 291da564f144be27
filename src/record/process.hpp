// How a process and its threads attach to the ring, and the records that say who they are.
#pragma once

#include "thread.hpp"

namespace mallard::record {

/// getpid() of this process.
std::uint32_t system_process() noexcept;

/// Whether the command that owns the ring has ended. Then recording ends in this process as well.
bool command_has_ended() noexcept;

/// Begins to record this process, which runs already, into a ring. Returns attach_status. The
/// calling thread announces the process. `process` is the process id, as the command knows it, and
/// `of_command` that of the command; 0: it is not visible to this process.
std::int32_t attach_running(int ring_file, std::uint32_t process, pid_t of_command) noexcept;

/// Ends what `attach_running` has begun. Waits for threads that are writing an event. Then other
/// pages replace those of the ring, in case that a signal handler has left a call by a jump.
void leave_ring() noexcept;

// --- segments.cpp ---

/// Seals the segment of the thread, if it has one.
void seal(thread_state& t) noexcept;

constexpr std::size_t text_bytes_max = 4608;

/// Appends a record with a text of at most `text_bytes_max` bytes. Waits while the ring is full,
/// whatever `on_full` is: a reader needs these records.
void append_text(thread_state& t, mallard_trace_record record, const char* text,
                 std::size_t bytes) noexcept;

// --- environment.cpp ---

/// The value of the variable MALLARD_RING in the environment that the kernel passed to the program;
/// null if there is none.
char* find_ring_variable() noexcept;

/// Removes MALLARD_RING and the recorder's entry of LD_PRELOAD from the environment, so that the
/// programs that this program starts are not recorded.
void clear_environment() noexcept;

// --- handover.cpp ---

constexpr std::size_t socket_name_length = 5;
constexpr std::size_t token_length = 32;

/// Returns a descriptor of the ring, which the command sends over its socket to a process that
/// knows the token, or -1. Sets `command` to the process id of the command, or to 0 if it is not
/// visible to this process.
int receive_ring(const char* name, const char* token, pid_t& command) noexcept;

/// Returns the descriptor that the other side of a connected socket sends, or -1.
int receive_descriptor(int socket) noexcept;

// --- modules.cpp ---

/// Appends the record of this process. `how` is start, attach, fork or exec; `process_before` is
/// the number of the process that forked or executed this one, or 0.
void append_process(thread_state& t, const char* how, std::uint32_t process_before) noexcept;

/// Appends a record for each module that is loaded.
void append_modules(thread_state& t) noexcept;

/// Appends a record of the module whose first segment is mapped at `begin`.
void append_new_module(std::uintptr_t begin, const char* path) noexcept;

} // namespace mallard::record
