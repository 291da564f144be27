// Tells whether ThreadSanitizer runs, and which of its runtimes. Also compiles without ThreadSanitizer.
#pragma once

extern "C" [[gnu::weak]] void __tsan_init();

namespace mallard::testing {

inline bool has_tsan()
{
    return __tsan_init != nullptr;
}

/// Whether the runtime is that of LLVM 14 and later, which g++ has since version 13. That runtime
/// holds its own locks during a fork, and deletes its state of a thread before the last round of
/// destructors of thread keys.
inline bool has_tsan_of_llvm_14()
{
#if defined(__clang__) || __GNUC__ >= 13
    return has_tsan();
#else
    return false;
#endif
}

} // namespace mallard::testing
