// Records a process that runs already. Contains the function that `mallard record --pid` calls in
// the process, and the thread that ends the recording.
#include "../os/errno_kept_linux.hpp"
#include "../preload/next.hpp"
#include "attach_request.hpp"
#include "process.hpp"
#include "redirection.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mallard::record {

namespace {

constinit int command_socket = -1;
constinit struct stat socket_before{};

constexpr std::size_t stack_bytes = std::size_t{256} << 10;

/// Returns whether the descriptor still refers to the socket. The program may have closed all
/// descriptors, and may have opened another file with this number.
bool has_socket() noexcept
{
    struct stat now{};
    return ::fstat(command_socket, &now) == 0 && now.st_dev == socket_before.st_dev &&
           now.st_ino == socket_before.st_ino;
}

/// Waits for messages of the command, and finally ends the recording. This is the main function of
/// the recorder's thread. All signals are blocked in this thread, so that no signal handler of the
/// program runs in it.
void* serve(void*) noexcept
{
    ::prctl(PR_SET_NAME, "mallard-record");
    char message = attach_detach;
    while (has_socket() && ::recv(command_socket, &message, 1, 0) == 1 &&
           message == attach_look_again)
        redirect(true);
    restore();
    leave_ring();
    if (has_socket()) {
        message = attach_detach;
        ::send(command_socket, &message, 1, MSG_NOSIGNAL);
        ::close(command_socket);
    }
    return nullptr;
}

/// Starts the thread of the recorder. The thread inherits the set of blocked signals.
bool start_thread() noexcept
{
    pthread_attr_t how;
    if (::pthread_attr_init(&how) != 0)
        return false;
    ::pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    ::pthread_attr_setstacksize(&how, stack_bytes);
    pthread_t thread;
    bool const is_started = ::pthread_create(&thread, &how, serve, nullptr) == 0;
    ::pthread_attr_destroy(&how);
    return is_started;
}

class blocked_signals {
public:
    blocked_signals() noexcept
    {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    blocked_signals(const blocked_signals&) = delete;
    blocked_signals& operator=(const blocked_signals&) = delete;
    ~blocked_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

std::int32_t attach(attach_request const& request) noexcept
{
    if (request.version != attach_version || request.entries > attach_entries_max)
        return attach_wrong_version;
    if (!find_functions())
        return attach_preloaded;
    preload::find_definition = first_definition;
    if (!preload::find_next())
        return attach_refused;
    int const ring = receive_descriptor(request.socket);
    std::int32_t const status = attach_running(ring, request.process, request.command);
    if (status != attach_done)
        return status;
    command_socket = request.socket;
    ::fstat(command_socket, &socket_before);
    this_thread.now.store(in_call, std::memory_order_relaxed); // do not record the calls below
    begin_redirection();
    bool const is_started = start_thread();
    this_thread.now.store(in_program, std::memory_order_relaxed);
    if (is_started)
        return attach_done;
    restore();
    leave_ring();
    return attach_no_thread;
}

} // namespace

} // namespace mallard::record

extern "C" {

/// The address of the memory in the last request's `scratch`, which the next command reuses.
[[gnu::visibility("default")]] constinit std::uintptr_t mallard_record_scratch = 0;

[[gnu::visibility("default")]] std::int32_t
mallard_record_attach(mallard::record::attach_request const* request) noexcept
{
    using namespace mallard::record;
    mallard::os::errno_kept const kept;
    blocked_signals const blocked;
    ::close(request->peer); // so that the socket is closed when the command exits
    if (request->version == attach_version)
        mallard_record_scratch = request->scratch;
    for (std::uint32_t i = 0; i < request->entries && i < attach_entries_max; ++i) {
        attach_entry const& entry = request->entry[i];
        restore_entry(entry.at, entry.before, entry.now);
    }
    std::int32_t const status = attach(*request);
    if (status != attach_done)
        ::close(request->socket);
    if (request->library >= 0)
        ::close(request->library);
    return status;
}
}
