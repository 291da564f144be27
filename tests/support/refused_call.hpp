// Makes a system call fail, as on another kernel or in a sandbox.
#pragma once

#include <cstddef>
#include <cstdint>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

namespace mallard::testing {

/// Makes `call` fail with `error` until the process exits, so use this function in a child. Returns
/// false if the system does not permit that.
inline bool refuse_call(long call, int error)
{
    auto const number = static_cast<std::uint32_t>(call);
    auto const refusal = SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
    sock_filter program[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, number},
        {BPF_RET | BPF_K, 0, 0, refusal},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    sock_fprog const filter{4, program};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

} // namespace mallard::testing
