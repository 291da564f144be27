// The functions of a C++ runtime that the headers and src/os call, so that a C program needs no C++
// runtime. The library does not export them: see CMakeLists.txt.
#include <mallard/detail/base/fatal.hpp>

#include <cstdlib>
#include <functional>
#include <utility>

#include <pthread.h>

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl58-cpp): they are the runtime's names

namespace std {

// A std::mutex calls this if the lock was destroyed, or is held by the same thread.
void __throw_system_error(int error)
{
    (mallard::fatal_message() << "mallard: a lock failed with error "
                              << static_cast<std::size_t>(error) << "\n"
                              << "  an allocator was used after its end, or by a callback of its "
                                 "own\n"
                              << "  help: look who calls, in a debugger: `break abort`\n")
        .stop();
}

// The headers of libstdc++ call this if they are compiled with -D_GLIBCXX_ASSERTIONS. They declare
// that the function does not return, but without [[noreturn]], so clang refuses [[noreturn]] here.
void __glibcxx_assert_fail(const char* file, int line, const char* function,
                           const char* condition) noexcept
{
    (mallard::fatal_message() << "mallard: in " << function << ", this does not hold: " << condition
                              << "\n"
                              << "  " << file << ":" << static_cast<std::size_t>(line) << "\n"
                              << "  help: this is a bug of mallard's; please report it\n")
        .stop();
}

} // namespace std

// Calls of functions at the end of a thread.
#if defined(__GLIBC__)
// A function of glibc. In a C++ runtime, `__cxa_thread_atexit` calls this function, too.
extern "C" int __cxa_thread_atexit_impl(void (*f)(void*), void* object, void* dso) noexcept;
extern "C" int __cxa_thread_atexit(void (*f)(void*), void* object, void* dso) noexcept
{
    return __cxa_thread_atexit_impl(f, object, dso);
}
#else
// Other C libraries have no such function. A thread-specific value is the list of the thread's
// calls, the latest first. musl never unloads a library, so the code of each call is still there.
namespace {

struct exit_call {
    void (*function)(void*);
    void* object;
    exit_call* next;
};

pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;
pthread_key_t exit_key;
bool has_exit_key = false;

void make_exit_calls(void* first)
{
    for (auto* call = static_cast<exit_call*>(first); call != nullptr;) {
        call->function(call->object);
        std::free(std::exchange(call, call->next));
    }
}

} // namespace

extern "C" int __cxa_thread_atexit(void (*f)(void*), void* object, void*) noexcept
{
    pthread_once(&exit_key_once,
                 [] { has_exit_key = pthread_key_create(&exit_key, make_exit_calls) == 0; });
    auto* const call = static_cast<exit_call*>(std::malloc(sizeof(exit_call)));
    if (call == nullptr || !has_exit_key)
        return std::free(call), -1;
    *call = {f, object, static_cast<exit_call*>(pthread_getspecific(exit_key))};
    if (pthread_setspecific(exit_key, call) == 0)
        return 0;
    return std::free(call), -1;
}
#endif

// A call of a pure virtual function would end here. There is no such call: each class of handles of
// the C library defines all virtual functions.
extern "C" [[noreturn]] void __cxa_pure_virtual()
{
    __builtin_trap();
}

// Initialisation of function-local statics: the first byte of the guard means "initialised".
namespace {

pthread_once_t lock_once = PTHREAD_ONCE_INIT;
pthread_mutex_t one_at_a_time; // recursive: an initialisation may contain another

void make_lock()
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&one_at_a_time, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

} // namespace

extern "C" int __cxa_guard_acquire(char* guard) noexcept
{
    pthread_once(&lock_once, make_lock);
    pthread_mutex_lock(&one_at_a_time);
    if (__atomic_load_n(guard, __ATOMIC_ACQUIRE) == 0)
        return 1; // held until `release`
    pthread_mutex_unlock(&one_at_a_time);
    return 0;
}

extern "C" void __cxa_guard_release(char* guard) noexcept
{
    __atomic_store_n(guard, char{1}, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&one_at_a_time);
}

// NOLINTEND(bugprone-reserved-identifier,cert-dcl58-cpp)
