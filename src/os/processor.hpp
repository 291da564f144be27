// Defines the differences between the processors that Mallard supports, x86-64 and AArch64.
#pragma once

#include <cstddef>
#include <cstdint>

#include <unistd.h>

namespace mallard::os {

/// The largest page size of a Linux kernel for this processor, in bytes. A range whose ends are
/// multiples of this size can be mapped and unmapped separately, for any page size of the kernel.
#if defined(__x86_64__)
inline constexpr std::size_t page_bytes_max = std::size_t{4} << 10;
#else
inline constexpr std::size_t page_bytes_max = std::size_t{64} << 10;
#endif

/// The number of bits in the address of a program's memory. Linux uses higher addresses only if a
/// program requests them.
#if defined(__x86_64__)
inline constexpr unsigned address_bits = 47;
#else
inline constexpr unsigned address_bits = 48;
#endif

/// Returns the page size of the kernel, in bytes. On AArch64, the page size differs between
/// kernels.
inline std::size_t kernel_page_bytes() noexcept
{
    return static_cast<std::size_t>(::getpagesize());
}

/// Whether functions maintain frame records, which is the default on AArch64. If they do, a stack
/// walk follows these records and reads no unwind tables.
#if defined(__x86_64__)
inline constexpr bool has_frame_records = false;
#else
inline constexpr bool has_frame_records = true;
#endif

/// Informs the processor that this thread spins.
inline void pause() noexcept
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory"); // `yield` returns immediately on most processors
#else
#error "Mallard supports x86-64 and AArch64 only"
#endif
}

/// Returns the thread pointer, which is the start of the thread control block.
inline std::uintptr_t thread_pointer() noexcept
{
#if defined(__x86_64__)
    std::uintptr_t pointer = 0;
    asm("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
#else
    return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
#endif
}

/// Removes the signature of a return address (pointer authentication of ARMv8.3). Older processors
/// treat the instruction as a no-op.
inline std::uintptr_t without_signature(std::uintptr_t address) noexcept
{
#if defined(__aarch64__)
    register std::uintptr_t x30 asm("x30") = address;
    asm("hint #7" : "+r"(x30)); // xpaclri
    return x30;
#else
    return address;
#endif
}

} // namespace mallard::os
