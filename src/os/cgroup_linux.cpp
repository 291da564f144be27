// Reads a control group's limit and usage from the files of cgroup v2.
#include "cgroup.hpp"

#include <mallard/detail/base/text.hpp>

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace mallard::os {
namespace {

constexpr std::size_t text_bytes = 1024; // threads may have small stacks

/// Reads the beginning of a file as text. False if the file cannot be read. Calls the system
/// directly: open and read of the C library are cancellation points, and malloc must not be one.
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

/// The text after `key` in the first line that begins with `key`; null if no line does.
const char* line_after(const char* text, const char* key) noexcept
{
    std::size_t const length = std::strlen(key);
    while (text != nullptr && std::strncmp(text, key, length) != 0) {
        text = std::strchr(text, '\n');
        text = text == nullptr ? nullptr : text + 1;
    }
    return text == nullptr ? nullptr : text + length;
}

} // namespace

/// The number in `file` after the word `before`; 0 if there is no number (for example "max").
std::size_t cgroup::number_in(const char* file, const char* before) const noexcept
{
    char path[path_bytes + 32];
    text_writer out(path, sizeof path);
    out << folder_ << file << '\0';
    char text[text_bytes];
    if (!is_known() || !read_file(path, text))
        return 0;
    const char* const number = line_after(text, before);
    std::size_t value = 0;
    for (const char* at = number; at != nullptr && *at >= '0' && *at <= '9'; ++at)
        value = value * 10 + static_cast<std::size_t>(*at - '0');
    return value;
}

void cgroup::find(const char* own, const char* mount) noexcept
{
    folder_[0] = '\0';
    char text[text_bytes];
    const char* const path = read_file(own, text) ? line_after(text, "0::/") : nullptr;
    if (path == nullptr || std::strncmp(path, "..", 2) == 0) // the group is outside the mount
        return;
    text_writer out(folder_, sizeof folder_);
    out << mount << '/';
    std::size_t const root = out.needed();
    for (const char* at = path; *at != '\0' && *at != '\n'; ++at)
        out << *at;
    if (out.needed() != root)
        out << '/';
    out << '\0';
    if (out.needed() != out.written()) {
        folder_[0] = '\0';
        return;
    }
    // A group without a limit says "max": the limit of the enclosing group applies.
    while (number_in("memory.max") == 0) {
        std::size_t length = std::strlen(folder_);
        if (length <= root) {
            folder_[0] = '\0';
            return;
        }
        while (folder_[length - 2] != '/')
            length -= 1;
        folder_[length - 1] = '\0';
    }
}

bool cgroup::is_short() const noexcept
{
    std::size_t const limit = number_in("memory.max");
    std::size_t const most = limit / 100 * 85;
    std::size_t const used = number_in("memory.current");
    if (limit == 0 || used <= most)
        return false;
    return used - most > number_in("memory.stat", "inactive_file ");
}

} // namespace mallard::os
