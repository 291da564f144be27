// Uses malloc in a sandbox that kills the process for every system call except those that the
// arguments name and those that the program itself makes. `sandboxed CALL...`
//
// The program enters the sandbox after its start. It defines a clock, which malloc reads too. This
// clock runs fast, so that malloc does without a wait what it otherwise does after seconds.
#include "../family.hpp"
#include "check.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern "C" int clock_gettime(clockid_t, timespec* now) noexcept
{
    static long milliseconds = 1'000'000;
    long const at = __atomic_add_fetch(&milliseconds, 20, __ATOMIC_RELAXED);
    *now = {at / 1000, at % 1000 * 1'000'000};
    return 0;
}

namespace {

using namespace mallard::testing;

struct {
    const char* name;
    unsigned number;
} constexpr known[] = {
    {"mmap", SYS_mmap},
    {"munmap", SYS_munmap},
    {"mremap", SYS_mremap},
    {"mprotect", SYS_mprotect},
    {"madvise", SYS_madvise},
    {"futex", SYS_futex},
    {"membarrier", SYS_membarrier},
    {"write", SYS_write},
};

// System calls of the program itself: threads start and exit, the program writes its last line, and
// the process exits.
constexpr unsigned of_the_program[] = {SYS_clone,          SYS_clone3,       SYS_set_robust_list,
                                       SYS_rseq,           SYS_exit,         SYS_exit_group,
                                       SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_mmap,
                                       SYS_munmap,         SYS_mprotect, // stacks of threads
                                       SYS_madvise,        SYS_futex,        SYS_write};

sock_filter code[64];
unsigned short length = 0;

void allow(unsigned call)
{
    code[length++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    code[length++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
}

void enter_sandbox(int count, char** names)
{
    code[length++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
    for (unsigned const call : of_the_program)
        allow(call);
    for (int i = 1; i < count; ++i) {
        bool is_known = false;
        for (auto const& [name, number] : known)
            if (std::strcmp(name, names[i]) == 0) {
                allow(number);
                is_known = true;
            }
        check(is_known, "the program knows each system call that the guide names");
    }
    code[length++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    sock_fprog const program{length, code};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        std::perror("sandboxed");
        ::_exit(77); // the test is skipped
    }
}

/// Returns whether `ulimit -v` limits the address space. Then there may be no memory for a thread's
/// stack.
bool is_limited()
{
    rlimit limit{};
    return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/// Allocates blocks of all sizes in all ways, resizes half of them, and frees them.
void* work(void*)
{
    constexpr std::size_t sizes[] = {1, 100, 3000, 20'000, 300'000, 5'000'000, 40'000'000};
    void* blocks[200] = {};
    for (int round = 0; round < 40; ++round) {
        for (std::size_t i = 0; i < std::size(blocks); ++i) {
            std::size_t const bytes = sizes[i % 40 == 0 ? i / 40 % 7 : i % 5];
            member const& how = family[i % std::size(family)];
            blocks[i] = how.allocate(bytes + i);
            check(blocks[i] != nullptr || errno == ENOMEM, "null is for want of memory");
            if (blocks[i] != nullptr)
                std::memset(blocks[i], 1, bytes < 4096 ? bytes : 4096);
        }
        for (std::size_t i = 0; i < std::size(blocks); i += 2)
            if (void* const moved = std::realloc(blocks[i], 2 * sizes[i % std::size(sizes)]))
                blocks[i] = moved;
        for (void* const block : blocks)
            std::free(block);
    }
    return nullptr;
}

} // namespace

int main(int count, char** arguments)
{
    bool const limited = is_limited(); // the sandbox forbids the system call
    enter_sandbox(count, arguments);
    work(nullptr);
    pthread_t threads[4];
    for (int round = 0; round < 2; ++round) {
        int started = 0;
        while (started < 4) {
            int const error = ::pthread_create(&threads[started], nullptr, work, nullptr);
            check(error == 0 || (limited && error == EAGAIN),
                  "threads start, or the others have all memory of the limit");
            if (error != 0)
                break;
            ++started;
        }
        work(nullptr);
        while (started > 0)
            ::pthread_join(threads[--started], nullptr);
    }
    ::malloc_trim(0);
    check(::mallinfo2().arena != 0, "there is memory");
    ::malloc_stats();
}
