// Makes system calls of its own process fail before the first constructor runs. The arguments of
// the program name the calls: `mprotect=EPERM`, or `data` for all memory.
//
// The failures start after the loader has run, because the loader itself needs mprotect. They start
// before main, so that malloc has to initialise itself without these calls.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace mallard::testing {

struct named {
    const char* name;
    unsigned number;
};
inline constexpr named calls[] = {
    {"mmap", SYS_mmap},           {"mprotect", SYS_mprotect},
    {"munmap", SYS_munmap},       {"madvise", SYS_madvise},
    {"mremap", SYS_mremap},       {"membarrier", SYS_membarrier},
    {"getrandom", SYS_getrandom}, {"sched_getaffinity", SYS_sched_getaffinity},
    {"sysinfo", SYS_sysinfo},     {"prctl", SYS_prctl},
    {"openat", SYS_openat}};
inline constexpr named errors[] = {
    {"EPERM", EPERM}, {"EINVAL", EINVAL}, {"ENOMEM", ENOMEM}, {"ENOSYS", ENOSYS}};

template <class Table>
inline unsigned number_of(const char* name, std::size_t length, const Table& table)
{
    for (named const& one : table)
        if (std::strlen(one.name) == length && std::strncmp(one.name, name, length) == 0)
            return one.number;
    std::fprintf(stderr, "refuse: %s is not known\n", name);
    ::_exit(2);
}

inline void refuse_call(unsigned call, unsigned error)
{
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog const program{sizeof code / sizeof *code, code};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        std::perror("refuse");
        ::_exit(77); // the test is skipped
    }
}

inline void refuse_what_arguments_say(int count, char** arguments, char**)
{
    for (int i = 1; i < count; ++i) {
        const char* const argument = arguments[i];
        if (const char* const equals = std::strchr(argument, '=')) {
            auto const length = static_cast<std::size_t>(equals - argument);
            refuse_call(number_of(argument, length, calls),
                        number_of(equals + 1, std::strlen(equals + 1), errors));
        } else if (std::strcmp(argument, "data") == 0) {
            rlimit const none{0, 0};
            ::setrlimit(RLIMIT_DATA, &none);
        }
    }
}

[[gnu::section(".preinit_array"),
  gnu::used]] inline void (*const refuse_early)(int, char**, char**) = refuse_what_arguments_say;

} // namespace mallard::testing
