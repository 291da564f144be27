// Reads a control group's limit from the files of cgroup v2.
#include "cgroup.hpp"

#include <mallard/detail/base/text.hpp>

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace mallard::os {
namespace {

constexpr std::size_t text_bytes = 1024;
constexpr std::size_t path_bytes = 512;

/// Reads the beginning of a file as text. Returns false if the file cannot be read. Makes system
/// calls directly, since a constructor may call this function before the C library is initialised.
bool read_file(const char* path, char (&text)[text_bytes]) noexcept
{
    int const before = errno;
    text[0] = '\0';
    long const file = ::syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        long const length = ::syscall(SYS_read, file, text, sizeof text - 1);
        text[length > 0 ? length : 0] = '\0';
        ::syscall(SYS_close, file);
    }
    errno = before;
    return text[0] != '\0';
}

/// Returns the text after `key` in the first line that begins with `key`, or null if no line begins
/// with `key`.
const char* line_after(const char* text, const char* key) noexcept
{
    std::size_t const length = std::strlen(key);
    while (text != nullptr && std::strncmp(text, key, length) != 0) {
        text = std::strchr(text, '\n');
        text = text == nullptr ? nullptr : text + 1;
    }
    return text == nullptr ? nullptr : text + length;
}

/// Returns the number in the file `memory.max` of a group, or 0 if the file contains no number (for
/// example "max").
std::size_t limit_of(const char* group) noexcept
{
    char path[path_bytes + 32];
    text_writer out(path, sizeof path);
    out << group << "memory.max" << '\0';
    char text[text_bytes];
    std::size_t value = 0;
    if (read_file(path, text))
        for (const char* at = text; *at >= '0' && *at <= '9'; ++at)
            value = value * 10 + static_cast<std::size_t>(*at - '0');
    return value;
}

} // namespace

std::size_t memory_limit_of_group(const char* own, const char* mount) noexcept
{
    char text[text_bytes];
    const char* const path = read_file(own, text) ? line_after(text, "0::/") : nullptr;
    if (path == nullptr || std::strncmp(path, "..", 2) == 0) // the group is outside the mount
        return 0;
    char group[path_bytes]; // ends with a slash
    text_writer out(group, sizeof group);
    out << mount << '/';
    std::size_t const root = out.needed();
    for (const char* at = path; *at != '\0' && *at != '\n'; ++at)
        out << *at;
    if (out.needed() != root)
        out << '/';
    out << '\0';
    if (out.needed() != out.written())
        return 0;
    // The file of a group without a limit contains "max". For such a group, the limit of the
    // enclosing group applies.
    std::size_t length = std::strlen(group);
    for (;;) {
        std::size_t const limit = limit_of(group);
        if (limit != 0 || length <= root)
            return limit;
        while (group[length - 2] != '/')
            length -= 1;
        group[--length] = '\0';
    }
}

} // namespace mallard::os
