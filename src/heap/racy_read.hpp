// Reads values that another thread may be writing.
#pragma once

namespace mallard::engine {

/// Reads a value that another thread may change at the same time. The result may be out of date,
/// but the compiler reads the value exactly once. ThreadSanitizer does not report the read.
template <class T>
[[gnu::no_sanitize_thread, gnu::noinline]] T racy_read(const T& value) noexcept
{
    return *const_cast<const volatile T*>(&value);
}

} // namespace mallard::engine
