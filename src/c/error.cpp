// The error names of the C API, and the last failure of each thread.
#include "error.hpp"

#include <mallard/detail/base/bits.hpp>

#include <cerrno>
#include <cstring>

namespace mallard::c {
namespace {

constexpr message none{MALLARD_ERROR_NONE, "mallard: no call of this thread has failed\n"
                                           "  there is nothing to explain\n"
                                           "  help: call mallard_explain after a failure, in the "
                                           "same thread\n"};

struct failure {
    const message* what = &none;
    value values[5];
};

// The last failure of this thread. The variable is in static thread-local storage (see
// CMakeLists.txt), so reading it never allocates. The record is small, since a library that is
// loaded by dlopen gets little static thread-local storage.
constinit thread_local failure last;
static_assert(sizeof last <= 64);

/// Writes text to the caller's buffer, and truncates the text if the buffer is too small.
class writer {
public:
    writer(char* text, std::size_t bytes) noexcept : next_(text), end_(text + bytes - 1) {}

    void put(char c) noexcept
    {
        if (next_ != end_)
            *next_++ = c;
    }
    void put(const char* word) noexcept
    {
        while (*word != '\0')
            put(*word++);
    }
    void put(std::uintptr_t number, unsigned base) noexcept
    {
        char digits[20];
        int count = 0;
        do {
            digits[count++] = "0123456789abcdef"[number % base];
            number /= base;
        } while (number != 0);
        while (count > 0)
            put(digits[--count]);
    }
    void put(char kind, value v) noexcept
    {
        switch (kind) {
        case 's':
            return put(reinterpret_cast<const char*>(v.bits));
        case 'p':
            put("0x");
            return put(v.bits, 16);
        case 'i':
            if (auto const number = static_cast<std::intptr_t>(v.bits); number < 0) {
                put('-');
                return put(0 - v.bits, 10);
            }
            [[fallthrough]];
        default:
            return put(v.bits, 10);
        }
    }
    void end() noexcept { *next_ = '\0'; }

private:
    char* next_;
    char* end_; // the last byte is for the NUL
};

} // namespace

mallard_error fail(const message& what, value a, value b, value c, value d, value e) noexcept
{
    last = {&what, {a, b, c, d, e}};
    errno = what.code < MALLARD_ERROR_TOO_LARGE ? EINVAL : ENOMEM;
    return what.code;
}

} // namespace mallard::c

using namespace mallard;

int mallard_version()
{
    return MALLARD_VERSION;
}

mallard_error mallard_last_error()
{
    return c::last.what->code;
}

const char* mallard_strerror(int error)
{
    switch (error) {
    case MALLARD_ERROR_NONE:
        return "no error";
    case MALLARD_ERROR_NULL:
        return "a handle or argument is NULL";
    case MALLARD_ERROR_STRUCT:
        return "struct_bytes is not the size of that struct";
    case MALLARD_ERROR_OPTION:
        return "an option has a value that it cannot have";
    case MALLARD_ERROR_CONFLICT:
        return "two options contradict each other";
    case MALLARD_ERROR_ALIGN:
        return "an alignment is not a power of two";
    case MALLARD_ERROR_UNSUPPORTED:
        return "this kind of allocator does not support the call";
    case MALLARD_ERROR_CHUNK:
        return "the caller's source returned a misaligned chunk";
    case MALLARD_ERROR_TOO_LARGE:
        return "no address space is so large";
    case MALLARD_ERROR_REFUSED:
        return "the source has no more memory";
    case MALLARD_ERROR_LIMIT:
        return "the limit of the allocator is reached";
    case MALLARD_ERROR_PLACE:
        return "the block cannot grow in place";
    default:
        return "not an error of Mallard";
    }
}

const char* mallard_explain(char* text, size_t bytes)
{
    c::failure const& shown = c::last;
    if (text == nullptr || bytes == 0)
        return mallard_strerror(shown.what->code);
    c::writer out(text, bytes);
    const c::value* next = shown.values;
    for (const char* p = shown.what->text; *p != '\0'; ++p) {
        if (*p == '%')
            out.put(*++p, *next++);
        else
            out.put(*p);
    }
    out.end();
    return text;
}
