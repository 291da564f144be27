// Informs AddressSanitizer and Valgrind which bytes are free.
//
// Every build with AddressSanitizer marks free bytes. Calls to Valgrind are compiled only with the
// pool option `check::on`, because even when Valgrind does not run, such a call costs about a dozen
// instructions, more than the whole hot path of a pool. All types have the same layout with and
// without AddressSanitizer.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define MALLARD_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MALLARD_HAS_ASAN 1
#endif
#endif

#ifdef MALLARD_HAS_ASAN
#undef MALLARD_HAS_ASAN
extern "C" void __asan_poison_memory_region(void const volatile*, std::size_t);
extern "C" void __asan_unpoison_memory_region(void const volatile*, std::size_t);

namespace mallard::asan {
// Hides from GCC which buffer the pointer points to. GCC assumes that a function reads through a
// pointer to const, and would warn if a buffer of the caller is uninitialised.
inline const void* of_unknown_bytes(const void* p) noexcept
{
    asm("" : "+r"(p));
    return p;
}
inline void poison(const void* p, std::size_t bytes) noexcept
{
    __asan_poison_memory_region(of_unknown_bytes(p), bytes);
}
inline void unpoison(const void* p, std::size_t bytes) noexcept
{
    __asan_unpoison_memory_region(of_unknown_bytes(p), bytes);
}
inline constexpr bool is_on = true;
} // namespace mallard::asan
#else
namespace mallard::asan {
inline void poison(const void*, std::size_t) noexcept {}
inline void unpoison(const void*, std::size_t) noexcept {}
inline constexpr bool is_on = false;
} // namespace mallard::asan
#endif

#if __has_include(<valgrind/memcheck.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <valgrind/memcheck.h>
namespace mallard::valgrind {
inline void poison(const void* p, std::size_t bytes) noexcept
{
    static_cast<void>(VALGRIND_MAKE_MEM_NOACCESS(p, bytes));
}
inline void unpoison(const void* p, std::size_t bytes) noexcept
{
    static_cast<void>(VALGRIND_MAKE_MEM_UNDEFINED(p, bytes));
}
inline void report_errors(bool on) noexcept
{
    if (on)
        VALGRIND_ENABLE_ERROR_REPORTING;
    else
        VALGRIND_DISABLE_ERROR_REPORTING;
}
/// Returns whether the byte at `p` may be read: 1 if it may, 3 if not, 0 if memcheck does not run.
inline int is_addressable(const void* p) noexcept
{
    unsigned char bits = 0;
    return static_cast<int>(VALGRIND_GET_VBITS(p, &bits, 1));
}
} // namespace mallard::valgrind
#pragma GCC diagnostic pop
#else
namespace mallard::valgrind {
inline void poison(const void*, std::size_t) noexcept {}
inline void unpoison(const void*, std::size_t) noexcept {}
inline void report_errors(bool) noexcept {}
inline int is_addressable(const void*) noexcept
{
    return 0;
}
} // namespace mallard::valgrind
#endif

namespace mallard {

/// Marks `bytes` bytes from `p` on as free. AddressSanitizer then reports an access as a bug. With
/// `ChecksOn`, Valgrind reports the access too.
template <bool ChecksOn>
inline void poison(const void* p, std::size_t bytes) noexcept
{
    asan::poison(p, bytes);
    if constexpr (ChecksOn)
        valgrind::poison(p, bytes);
}

/// Marks `bytes` bytes from `p` on as accessible again.
template <bool ChecksOn>
inline void unpoison(const void* p, std::size_t bytes) noexcept
{
    asan::unpoison(p, bytes);
    if constexpr (ChecksOn)
        valgrind::unpoison(p, bytes);
}

/// Whether `poison` and `unpoison` do anything.
template <bool ChecksOn>
inline constexpr bool marks_free_bytes = asan::is_on || ChecksOn;

/// Turns Valgrind's error reports off during a C++ scope. An allocator needs this scope when it
/// reads the links of its free lists, because they are in free blocks.
template <bool ChecksOn>
class no_valgrind_reports {
public:
    no_valgrind_reports() noexcept
    {
        if constexpr (ChecksOn)
            valgrind::report_errors(false);
    }
    ~no_valgrind_reports()
    {
        if constexpr (ChecksOn)
            valgrind::report_errors(true);
    }
    no_valgrind_reports(const no_valgrind_reports&) = delete;
    no_valgrind_reports& operator=(const no_valgrind_reports&) = delete;
};

} // namespace mallard
