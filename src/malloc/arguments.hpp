// What the functions that a program calls do with their arguments.
#pragma once

#include "../os/system.hpp"

namespace mallard {

/// False, and errno is ENOMEM, when the product has no size.
inline bool product(std::size_t count, std::size_t bytes, std::size_t& all) noexcept
{
    return !__builtin_mul_overflow(count, bytes, &all) || os::out_of_memory() != nullptr;
}

} // namespace mallard
