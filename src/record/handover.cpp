// Receives the ring from the command over a socket.
#include "process.hpp"

#include <cstddef>
#include <cstring>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace mallard::record {

namespace {

/// How long this process waits for a command that does not answer, for example because the command
/// was stopped.
constexpr timeval patience{10, 0};

/// Connects the socket to the address `name` in the abstract namespace, and sends the token.
bool ask(int socket, const char* name, const char* token) noexcept
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name, socket_name_length);
    auto const bytes =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + socket_name_length);
    return ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
           ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
           ::connect(socket, reinterpret_cast<sockaddr*>(&address), bytes) == 0 &&
           ::send(socket, token, token_length, MSG_NOSIGNAL) == ssize_t{token_length};
}

} // namespace

int receive_descriptor(int socket) noexcept
{
    char byte = 0;
    iovec text{&byte, 1};
    alignas(cmsghdr) char rights[CMSG_SPACE(sizeof(int))]{};
    msghdr message{};
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = rights;
    message.msg_controllen = sizeof rights;
    if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) <= 0)
        return -1;
    cmsghdr const* const head = CMSG_FIRSTHDR(&message);
    if (head == nullptr || head->cmsg_type != SCM_RIGHTS)
        return -1;
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
    return descriptor;
}

int receive_ring(const char* name, const char* token, pid_t& command) noexcept
{
    int const socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0)
        return -1;
    ucred of{};
    socklen_t bytes = sizeof of;
    bool const is_asked =
        ask(socket, name, token) && ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &of, &bytes) == 0;
    int const descriptor = is_asked ? receive_descriptor(socket) : -1;
    ::close(socket);
    command = of.pid;
    return descriptor;
}

} // namespace mallard::record
