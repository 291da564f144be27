// The size and alignment of a pool's blocks.
#pragma once

#include <mallard/options.hpp>

namespace mallard {

/// Divides by a constant with one multiplication:
/// (n + 1) * floor((2^64 - 1) / d) / 2^64 == n / d while n * d < 2^64,
/// which holds for offsets in 48 bits of address space and d below 2^16.
class slot_divider {
public:
    constexpr explicit slot_divider(std::size_t divisor) noexcept
        : reciprocal_(std::numeric_limits<std::size_t>::max() / divisor)
    {
    }
    constexpr std::size_t operator()(std::size_t offset, std::size_t divisor) const noexcept
    {
        __extension__ using wide = unsigned __int128;
        if (divisor >= 1 << 16) [[unlikely]]
            return offset / divisor;
        return static_cast<std::size_t>(static_cast<wide>(offset + 1) * reciprocal_ >> 64);
    }

private:
    std::size_t reciprocal_;
};

/// For those who divide rarely.
struct plain_divider {
    constexpr explicit plain_divider(std::size_t) noexcept {}
    constexpr std::size_t operator()(std::size_t offset, std::size_t divisor) const noexcept
    {
        return offset / divisor;
    }
};

struct slot_shape {
    std::size_t bytes;
    std::size_t align;

    /// Rounded up, never rejected: `align` to a power of two, `bytes` to `least`,
    /// a power of two, and to a multiple of `align`. An `align` of 0 is the natural
    /// one: the largest power of two that divides `bytes`, to 16.
    static constexpr slot_shape of(std::size_t bytes, std::size_t align, std::size_t least) noexcept
    {
        bytes = align_up(std::clamp(bytes, least, bytes_max + 1), least);
        if (align == 0)
            align = std::min(bytes & (~bytes + 1), alignof(std::max_align_t));
        align = std::bit_ceil(std::clamp(align, least, bytes_max / 2 + 1));
        return {align_up(bytes, align), align};
    }
};

} // namespace mallard
