// Checks of arguments that several functions of malloc share.
#pragma once

#include "../os/system.hpp"

namespace mallard {

/// Computes `count * bytes`. False: the product overflows, and errno is ENOMEM.
inline bool product(std::size_t count, std::size_t bytes, std::size_t& all) noexcept
{
    return !__builtin_mul_overflow(count, bytes, &all) || os::out_of_memory() != nullptr;
}

} // namespace mallard
