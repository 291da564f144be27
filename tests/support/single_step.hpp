// Interrupts a function after a chosen instruction and runs another function there. This imitates
// an interleaving of two threads that is the same in every run.
#pragma once

#include "asan.hpp"
#include "require.hpp"
#include "tsan.hpp"

#include <csignal>
#include <cstddef>
#include <ucontext.h>

namespace mallard::testing {

/// Runs a function with the processor's trap flag set (x86-64), which raises SIGTRAP after each
/// instruction. The handler runs in the same thread, so neither function may take a lock or depend
/// on the identity of its thread.
class single_step {
public:
    /// Runs `f`, and runs `other` after the first `steps` instructions of `f`. Returns false if `f`
    /// returned before that.
    template <class F, class Other>
    static bool interrupts(std::size_t steps, F f, Other other)
    {
        struct sigaction old{}, mine{};
        mine.sa_sigaction = on_trap;
        mine.sa_flags = SA_SIGINFO;
        require(sigaction(SIGTRAP, &mine, &old) == 0, "the test handles SIGTRAP");
        context_ = &other;
        other_ = [](void* context) { (*static_cast<Other*>(context))(); };
        left_ = steps + 1; // the instruction that sets the flag counts too
        set_flag(true);
        f();
        set_flag(false);
        sigaction(SIGTRAP, &old, nullptr);
        return left_ == 0;
    }

    /// Returns why a test cannot interrupt functions in this build, or null if it can.
    /// ThreadSanitizer's runtime takes a lock for each atomic operation, and a handler that
    /// interrupts such an operation would wait for this lock forever.
    static char const* refused()
    {
        return has_tsan() ? "ThreadSanitizer locks atomic variables, so a handler may wait forever"
                          : nullptr;
    }

    /// Returns the number of steps to try after `steps`. With AddressSanitizer a call has thousands
    /// of instructions, and the time of a test is proportional to the square of that number. So
    /// only every 101st instruction is tried with AddressSanitizer, and every instruction without
    /// it.
    static std::size_t after(std::size_t steps) { return steps + (has_asan() ? 101 : 1); }

private:
    static constexpr unsigned long long trap_flag = 0x100;

    static void set_flag(bool on)
    {
        unsigned long long const flags = __builtin_ia32_readeflags_u64();
        __builtin_ia32_writeeflags_u64(on ? flags | trap_flag : flags & ~trap_flag);
    }

    static void on_trap(int, siginfo_t*, void* interrupted)
    {
        if (left_ == 0 || --left_ != 0)
            return;
        static_cast<ucontext_t*>(interrupted)->uc_mcontext.gregs[REG_EFL] &=
            ~static_cast<greg_t>(trap_flag);
        other_(context_);
    }

    static inline std::size_t left_ = 0;
    static inline void* context_ = nullptr;
    static inline void (*other_)(void*) = nullptr;
};

} // namespace mallard::testing
