// Unwind rules, which describe how to step from a frame to its caller. Reads such rules from unwind
// tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mallard::os {

/// A rule describes how to find the registers of a frame's caller. A rule has 31 bits, so that a
/// rule and its code address fit into one word of a cache.
///
/// The CFA (canonical frame address) is the stack pointer of the caller after the call has
/// returned. The return address is in the word below that address.
class unwind_rule {
public:
    enum kinds : std::uint32_t {
        cut,       ///< there is no rule
        outermost, ///< the function has no caller
        signal,    ///< the code to which a signal handler returns; the registers are on the stack
        by_sp,     ///< CFA = sp + cfa()
        by_bp,     ///< CFA = bp + cfa()
        realigned, ///< CFA = the word at bp + cfa(); the word at bp is the caller's bp
        framed,    ///< AArch64: bp points to a frame record, the caller's bp and the return address
        no_function, ///< the code is between the functions that have a rule; never in the cache
    };
    static constexpr int bits = 31;

    constexpr unwind_rule() = default;
    constexpr explicit unwind_rule(kinds kind) : bits_(kind) {}
    constexpr explicit unwind_rule(std::uint64_t word)
        : bits_(static_cast<std::uint32_t>(word & 0x7fffffff))
    {
    }

    /// Makes a rule. Both offsets are in bytes, in two's complement. If the offsets do not fit, the
    /// result is the rule `cut`.
    static constexpr unwind_rule of(kinds kind, std::uint64_t cfa, std::uint64_t saved_bp) noexcept
    {
        unwind_rule rule;
        std::uint64_t const below = 0 - saved_bp;
        if (cfa % 8 == 0 && cfa + (1 << 24) < 1 << 25 && below % 8 == 0 && below < 512)
            rule.bits_ = static_cast<std::uint32_t>(kind | below | (cfa & 0x1fffff8) << 6);
        return rule;
    }

    constexpr std::uint32_t word() const noexcept { return bits_; }
    constexpr kinds kind() const noexcept { return kinds{bits_ & 7}; }
    /// Returns the offset of the CFA in bytes, from -16 MiB to below 16 MiB.
    constexpr std::intptr_t cfa() const noexcept
    {
        return static_cast<std::int32_t>(bits_ << 1) >> 10 << 3;
    }
    /// Returns the distance in bytes from the CFA down to the saved bp, at most 504, or 0 if bp is
    /// unchanged.
    constexpr std::uintptr_t saved_bp() const noexcept { return bits_ & 0x1f8; }

private:
    std::uint32_t bits_ = cut;
};

/// An entry of the search table in .eh_frame_hdr. Both members are 0 if no entry was found.
struct table_entry {
    std::uintptr_t begin = 0; ///< where the function begins
    std::uintptr_t fde = 0;   ///< the address of its FDE
};

/// Finds the entry for the code at `code`, which is the entry of the last function that begins at
/// or before `code`. `readable` contains .eh_frame_hdr, which begins at `header`. No other memory
/// is read, even if the table is corrupt.
table_entry find_entry(std::span<const std::byte> readable, std::uintptr_t header,
                       std::uintptr_t code) noexcept;

/// Returns the rule for the code at `code`, which the FDE at `entry` defines. `readable` contains
/// .eh_frame. No other memory is read, even if the FDE is corrupt.
unwind_rule read_rule(std::span<const std::byte> readable, std::uintptr_t entry,
                      std::uintptr_t code) noexcept;

} // namespace mallard::os
