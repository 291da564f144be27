// Size classes, the block sizes for which a multipool has pools.
#pragma once

#include <mallard/detail/base/bits.hpp>

#include <array>

namespace mallard {

/// Size classes, which are all multiples of `FineStep` up to 128 bytes, then 2^StepsLog2 sizes in
/// each doubling.
template <std::size_t FineStep, std::size_t StepsLog2>
struct size_classes {
    static constexpr std::size_t fine_max = 128;
    static constexpr std::size_t fine_step = FineStep;
    static constexpr std::size_t steps_log2 = StepsLog2;
    static constexpr std::size_t steps = std::size_t{1} << steps_log2;
    static constexpr std::size_t fine_count = fine_max / fine_step;

    /// Returns the index of the smallest class whose blocks hold `bytes` bytes. A request of 0
    /// bytes counts as 1 byte.
    static constexpr std::size_t of(std::size_t bytes) noexcept
    {
        if (bytes <= fine_max)
            return (bytes + (bytes == 0) - 1) / fine_step;
        std::size_t const doubling = std::size_t(std::bit_width(bytes - 1)) - 1; // 7 for 129..256
        // The analyzer does not know that bytes > fine_max. NOLINTNEXTLINE(*-core.BitwiseShift)
        std::size_t const step = (bytes - 1) >> (doubling - steps_log2); // 8..15 if steps is 8
        return fine_count + ((doubling - 7) << steps_log2) + (step - steps);
    }

    static constexpr std::size_t bytes(std::size_t index) noexcept
    {
        if (index < fine_count)
            return (index + 1) * fine_step;
        std::size_t const coarse = index - fine_count;
        return ((coarse & (steps - 1)) + steps + 1) << ((coarse >> steps_log2) + 7 - steps_log2);
    }

    static constexpr std::size_t align(std::size_t index) noexcept
    {
        return bytes(index) & (~bytes(index) + 1);
    }
};

/// The size classes of a multipool: multiples of 8 up to 128 bytes, then eight sizes in each
/// doubling (144, 160, ..., 256, 288, ...). So a block is at most 7 bytes larger than a request of
/// up to 128 bytes, and at most 12.5 % larger than any other request. The blocks of a class are
/// aligned to the largest power of two that divides their size. `spec/size_classes.csv` lists the
/// classes up to 32 KiB.
struct size_class : size_classes<8, 3> {
    using size_classes::of;

    /// Returns the class for a layout. Rounds the size up to a multiple of the alignment, so the
    /// block size of the class is a multiple of the alignment too.
    static constexpr std::size_t of(layout l) noexcept { return look_up(rounded(l)); }

    static constexpr std::size_t rounded(layout l) noexcept
    {
        return align_up(l.bytes + (l.bytes == 0), l.align);
    }

    /// Returns the same as `of` for a rounded size, but uses a table for small sizes.
    static constexpr std::size_t look_up(std::size_t bytes) noexcept;
};

/// A table for small sizes. Entry i is the class of i * 8 bytes. The table has 129 entries of one
/// byte.
inline constexpr auto small_classes = [] {
    std::array<std::uint8_t, 1024 / size_class::fine_step + 1> table{};
    for (std::size_t i = 0; i < table.size(); ++i)
        table[i] = static_cast<std::uint8_t>(size_class::of(i * size_class::fine_step));
    return table;
}();

constexpr std::size_t size_class::look_up(std::size_t bytes) noexcept
{
    std::size_t const steps = (bytes + fine_step - 1) / fine_step;
    return steps < small_classes.size() ? small_classes[steps] : of(bytes);
}

static_assert(size_class::bytes(size_class::of(128)) == 128);
static_assert(size_class::bytes(size_class::of(129)) == 144);
static_assert(size_class::bytes(size_class::of(256)) == 256);
static_assert(size_class::bytes(size_class::of(257)) == 288);
static_assert(size_class::bytes(size_class::of(4096)) == 4096);

} // namespace mallard
