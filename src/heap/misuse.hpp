// Reports misuse of the engine, and stops the process. Writing a message neither allocates nor
// locks a lock.
#pragma once

#include <cstddef>

namespace mallard::engine {

/// `call` is the name of the function that the program called, such as "free" or
/// "malloc_usable_size".
[[noreturn, gnu::cold]] void stop_at_double_free(const void* block, const char* call) noexcept;
[[noreturn, gnu::cold]] void stop_at_interior(const void* p, const char* call) noexcept;
[[noreturn, gnu::cold]] void stop_at_foreign(const void* p, const char* call) noexcept;
[[noreturn, gnu::cold]] void stop_at_wrong_size(const void* block, std::size_t said,
                                                std::size_t bytes) noexcept;
[[noreturn, gnu::cold]] void stop_at_confined(const void* heap) noexcept;
[[noreturn, gnu::cold]] void stop_at_destroyed(const void* heap) noexcept;
[[noreturn, gnu::cold]] void stop_at_damaged_list(const void* block) noexcept;

} // namespace mallard::engine
