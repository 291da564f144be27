// Defines the functions of a C++ runtime that the headers and src/os call, so that a C program
// needs no C++ runtime. The library does not export these functions (see CMakeLists.txt).
#include <mallard/detail/base/fatal.hpp>

#include <functional>

#include <pthread.h>

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl58-cpp): they are the runtime's names

namespace std {

// libstdc++ calls this function if a std::mutex cannot be locked, because the mutex was destroyed,
// or because the same thread holds the mutex already.
void __throw_system_error(int error)
{
    (mallard::fatal_message()
     << "mallard: a lock failed with error " << static_cast<std::size_t>(error) << "\n"
     << "  an allocator was used after its destruction, or by a callback of its "
        "own\n"
     << "  help: find the caller in a debugger with `break abort`\n")
        .stop();
}

// The headers of libstdc++ call this function if they are compiled with -D_GLIBCXX_ASSERTIONS. The
// headers do not declare it [[noreturn]], so clang rejects [[noreturn]] here, although the function
// does not return.
void __glibcxx_assert_fail(const char* file, int line, const char* function,
                           const char* condition) noexcept
{
    (mallard::fatal_message() << "mallard: in " << function
                              << ", this assertion failed: " << condition << "\n"
                              << "  " << file << ":" << static_cast<std::size_t>(line) << "\n"
                              << "  help: this is a bug in Mallard; please report it\n")
        .stop();
}

} // namespace std

// A function of the C library. In a C++ runtime, `__cxa_thread_atexit` calls this function, too.
extern "C" int __cxa_thread_atexit_impl(void (*f)(void*), void* object, void* dso) noexcept;
extern "C" int __cxa_thread_atexit(void (*f)(void*), void* object, void* dso) noexcept
{
    return __cxa_thread_atexit_impl(f, object, dso);
}

// A call of a pure virtual function would call this function. There is no such call, because each
// class of handles in the C library defines all virtual functions.
extern "C" [[noreturn]] void __cxa_pure_virtual()
{
    __builtin_trap();
}

// The functions that guard the initialisation of function-local statics. The first byte of the
// guard object is 1 after the initialisation.
namespace {
pthread_mutex_t one_at_a_time = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

extern "C" int __cxa_guard_acquire(char* guard) noexcept
{
    pthread_mutex_lock(&one_at_a_time);
    if (__atomic_load_n(guard, __ATOMIC_ACQUIRE) == 0)
        return 1; // locked until `__cxa_guard_release`
    pthread_mutex_unlock(&one_at_a_time);
    return 0;
}

extern "C" void __cxa_guard_release(char* guard) noexcept
{
    __atomic_store_n(guard, char{1}, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&one_at_a_time);
}

// NOLINTEND(bugprone-reserved-identifier,cert-dcl58-cpp)
