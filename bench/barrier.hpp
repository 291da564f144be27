// Functions that keep the compiler from removing a timed loop. They add no instructions.
#pragma once

#include <cstdint>
#include <new>

namespace mallard::bench {

/// Forces the compiler to compute `value`. The compiler must then assume that the result may be any
/// value. It must also assume that all memory whose address is known outside the current function
/// has changed.
template <class T>
[[gnu::always_inline]] inline T keep(T value) noexcept
{
    asm volatile("" : "+r"(value) : : "memory");
    return value;
}

/// Writes the first word of a block, as a program that allocated the block would.
[[gnu::always_inline]] inline void touch(void* block, std::uint64_t value) noexcept
{
    ::new (block) std::uint64_t(value);
    keep(block);
}

/// Writes the first byte of a block, as the benchmark published with the project "fixed memory
/// pool" does.
[[gnu::always_inline]] inline void touch_byte(void* block, std::uint64_t value) noexcept
{
    *static_cast<volatile unsigned char*>(block) = static_cast<unsigned char>(value);
    keep(block);
}

} // namespace mallard::bench
