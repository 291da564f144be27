// Checks arguments, for several functions of malloc.
#pragma once

#include "../os/system.hpp"

namespace mallard {

/// Computes `count * bytes`. If the product overflows, returns false and sets errno to ENOMEM.
inline bool product(std::size_t count, std::size_t bytes, std::size_t& all) noexcept
{
    return !__builtin_mul_overflow(count, bytes, &all) || os::out_of_memory() != nullptr;
}

} // namespace mallard
