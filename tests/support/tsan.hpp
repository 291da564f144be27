// Queries whether ThreadSanitizer runs, and which version of its runtime. Also compiles without it.
#pragma once

extern "C" {
[[gnu::weak]] void __tsan_init();
[[gnu::weak]] void* __tsan_memcpy(void*, const void*, unsigned long); // since LLVM 15 and gcc 13
}

namespace mallard::testing {

inline bool has_tsan()
{
    return __tsan_init != nullptr;
}

/// Returns whether the runtime is that of clang 15, g++ 13 or later. That runtime holds its own
/// locks during a fork, and deletes its state of a thread before the last round of destructors of
/// thread keys.
inline bool has_tsan_of_llvm_15()
{
    return __tsan_memcpy != nullptr;
}

} // namespace mallard::testing
