// The handover from `mallard record --pid` to a recorder that a running process loads.
//
// The command writes an attach_request into the memory of the process. It also makes a pair of
// sockets there, takes one of them, and sends the ring over it. Then a thread of the process loads
// the library and calls `mallard_record_attach` with the request.
//
// The library starts a thread that waits at its socket. The command sends `look_again`, after which
// modules that were loaded meanwhile are recorded as well, and `detach`. When all entries are as
// before, the thread answers with `detach` and exits. If the command ends, the socket is closed,
// and the thread does the same.
//
// crates/mallard-attach/src/request.rs must declare the same types. `version` changes
// with any of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mallard::record {

constexpr std::uint32_t attach_version = 1;

/// An entry of a module that the command has changed, so that a thread calls the command's code.
struct attach_entry {
    std::uintptr_t at;     ///< where the entry is
    std::uintptr_t before; ///< what the entry had
    std::uintptr_t now;    ///< what the command wrote
};

constexpr std::size_t attach_entries_max = 64;

struct attach_request {
    std::uint32_t version;
    std::int32_t socket;    ///< of this process
    std::int32_t command;   ///< process id of the command; 0: not visible to this process
    std::uint32_t entries;  ///< how many of `entry` are set
    std::uintptr_t scratch; ///< memory that the command has mapped in this process
    std::uint32_t process;  ///< process id of this process, as the command knows it
    std::int32_t library;   ///< a descriptor that this library was loaded from, or -1
    std::int32_t peer;      ///< the descriptor of this process for the command's socket
    std::uint32_t unused;
    attach_entry entry[attach_entries_max];
};

static_assert(sizeof(attach_entry) == 24 && offsetof(attach_request, entry) == 40);

/// What `mallard_record_attach` returns.
enum attach_status : std::int32_t {
    attach_done = 0,
    attach_wrong_version = 1,
    attach_busy = 2,      ///< another command records the process
    attach_preloaded = 3, ///< the library was preloaded
    attach_no_ring = 4,   ///< the ring was not received, or could not be mapped
    attach_no_thread = 5, ///< no thread could be started
    attach_refused = 6,   ///< the system refused something else
};

enum attach_message : char { attach_look_again = 'l', attach_detach = 'd' };

} // namespace mallard::record
