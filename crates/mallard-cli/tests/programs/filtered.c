/* Forbids itself all but a few system calls, as sandboxes do, and then allocates. With
 * arguments, forbids memfd_create instead, and runs the program that the arguments name. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sock_filter rules[32];
static unsigned short used;

static void rule(struct sock_filter next)
{
    rules[used++] = next;
}

/* Filters system calls. `at_these` is the action for `calls`, and `at_others` the action for all
   others. */
static void filter(const int* calls, size_t count, unsigned at_these, unsigned at_others)
{
    rule((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    for (size_t i = 0; i < count; ++i) {
        rule((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1));
        rule((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, at_these));
    }
    rule((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, at_others));
    struct sock_fprog const program = {used, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(77);
}

int main(int count, char** arguments)
{
    if (count > 1) {
        int const refused = SYS_memfd_create;
        filter(&refused, 1, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
        execv(arguments[1], arguments + 1);
        return 1;
    }
    int const few[] = {SYS_write,  SYS_exit_group, SYS_brk,      SYS_mmap,
                       SYS_munmap, SYS_futex,      SYS_getrandom};
    filter(few, sizeof few / sizeof *few, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
    for (int i = 0; i < 100000; ++i) {
        void* volatile block = malloc(70001);
        free(block);
    }
    return write(1, "done\n", 5) == 5 ? 9 : 1;
}
