// The interface between `mallard record --pid` and the recorder library that a running process
// loads.
//
// The command writes an attach_request into the memory of the process. The command also creates a
// pair of sockets in the process, duplicates one of them, and sends the descriptor of the ring over
// that socket. Then a thread of the process loads the library and calls `mallard_record_attach`
// with the request.
//
// The library starts a thread that reads messages from its socket. After the message
// `attach_look_again`, the thread also records modules that were loaded in the meantime. After the
// message `attach_detach`, it restores all entries, answers with `attach_detach` and exits. If the
// command exits, the socket is closed, and the thread also restores all entries and exits.
//
// crates/mallard-record/src/attach/request.rs must declare the same types. When any of these
// types changes, `version` changes, too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mallard::record {

constexpr std::uint32_t attach_version = 1;

/// An entry (a word with the address of a function) of a module. The command has changed the entry
/// so that a thread of the process calls the command's code.
struct attach_entry {
    std::uintptr_t at;     ///< the address of the entry
    std::uintptr_t before; ///< the original value of the entry
    std::uintptr_t now;    ///< the value that the command wrote
};

constexpr std::size_t attach_entries_max = 64;

struct attach_request {
    std::uint32_t version;
    std::int32_t socket;    ///< this process's end of the socket pair
    std::int32_t command;   ///< process ID of the command; 0 if not visible to this process
    std::uint32_t entries;  ///< number of used elements of `entry`
    std::uintptr_t scratch; ///< memory that the command has mapped in this process
    std::uint32_t process;  ///< process ID of this process in the PID namespace of the command
    std::int32_t library;   ///< the descriptor from which this library was loaded, or -1
    std::int32_t peer;      ///< this process's descriptor of the command's socket
    std::uint32_t unused;
    attach_entry entry[attach_entries_max];
};

static_assert(sizeof(attach_entry) == 24 && offsetof(attach_request, entry) == 40);

/// The result of `mallard_record_attach`.
enum attach_status : std::int32_t {
    attach_done = 0,
    attach_wrong_version = 1,
    attach_busy = 2,      ///< another command records the process
    attach_preloaded = 3, ///< the library was preloaded
    attach_no_ring = 4,   ///< the ring was not received, or could not be mapped
    attach_no_thread = 5, ///< no thread could be started
    attach_refused = 6,   ///< another system call failed
};

enum attach_message : char { attach_look_again = 'l', attach_detach = 'd' };

} // namespace mallard::record
