// Functions that keep the compiler from optimising a timed loop away. The barriers cost no
// instruction.
#pragma once

#include <cstdint>
#include <new>

namespace mallard::bench {

/// Forces the compiler to compute `value`. Afterwards the compiler knows nothing about `value`, nor
/// about any memory whose address has left the function.
template <class T>
[[gnu::always_inline]] inline T keep(T value) noexcept
{
    asm volatile("" : "+r"(value) : : "memory");
    return value;
}

/// Writes the first word of a block, as its user would.
[[gnu::always_inline]] inline void touch(void* block, std::uint64_t value) noexcept
{
    ::new (block) std::uint64_t(value);
    keep(block);
}

/// Writes the first byte of a block, as the benchmark of the fixed-pool report does.
[[gnu::always_inline]] inline void touch_byte(void* block, std::uint64_t value) noexcept
{
    *static_cast<volatile unsigned char*>(block) = static_cast<unsigned char>(value);
    keep(block);
}

} // namespace mallard::bench
