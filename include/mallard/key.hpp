// Keys of slot maps. A key is an integer that identifies an element and is never used for another
// element.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

namespace mallard {

/// Identifies one element of a `slot_map` for ever. A key contains the index of the element's slot,
/// and a generation, which counts the elements of that slot.
///
///     using enemy_key = mallard::key<20, 12, struct enemy>; // 4 bytes
///     enemy_key target;                                     // the null key: names nothing
///     std::uint32_t const sent = target.value();
///
/// A default key is null. Index 0 and generation 0 occur only in the null key, so a map has at most
/// 2^IndexBits - 1 slots, and each slot can hold 2^GenerationBits - 1 elements, one after the
/// other. With different `Tag` types, the keys of different maps have different types. Any integer
/// can be converted to a key. If no map has returned that integer, the key finds no element.
///
/// The index is in the low bits, and the generation is in the bits above. Keys are compared as
/// integers, so the generation is compared first.
template <unsigned IndexBits, unsigned GenerationBits, class Tag = void>
class key {
    static_assert(IndexBits >= 1 && GenerationBits >= 1,
                  "a key needs at least 1 bit for the index and 1 for the generation");
    static_assert(IndexBits <= 40 && IndexBits + GenerationBits <= 64,
                  "a key has at most 64 bits, and at most 40 of them for the index");

public:
    /// The integer type of the key: 4 or 8 bytes.
    using raw_type =
        std::conditional_t<IndexBits + GenerationBits <= 32, std::uint32_t, std::uint64_t>;

    /// The number of bits of the index, which are the lowest bits of the key.
    static constexpr unsigned index_bits = IndexBits;
    /// The number of bits of the generation, which are above the index.
    static constexpr unsigned generation_bits = GenerationBits;
    /// Selects the bits of the index.
    static constexpr raw_type index_mask = (raw_type{1} << IndexBits) - 1;
    /// The difference between the integers of two keys whose generations differ by one.
    static constexpr raw_type one_generation = raw_type{1} << IndexBits;
    /// The largest integer that is a key.
    static constexpr raw_type value_max = std::numeric_limits<raw_type>::max() >>
                                          (8 * sizeof(raw_type) - IndexBits - GenerationBits);

    constexpr key() noexcept = default;
    /// Makes the key with this integer, which `value` returned.
    constexpr explicit key(raw_type value) noexcept : value_(value) {}

    /// Returns the key as an integer, to store or send.
    constexpr raw_type value() const noexcept { return value_; }
    /// Returns the index of the slot, which is 0 only in the null key.
    constexpr std::size_t index() const noexcept { return value_ & index_mask; }
    /// Returns the generation, which is 0 only in the null key.
    constexpr std::size_t generation() const noexcept { return value_ >> IndexBits; }

    /// Returns false for the null key. True does not mean that the key names an element.
    constexpr explicit operator bool() const noexcept { return value_ != 0; }

    friend constexpr auto operator<=>(key, key) noexcept = default;

private:
    raw_type value_ = 0;
};

/// The usual key, of 4 bytes. A map has up to a million slots, each for 4,095 elements, one after
/// the other.
using key32 = key<20, 12>;

/// The key for large or long-lived maps, of 8 bytes. A map has up to four billion slots, each for
/// four billion elements, one after the other.
using key64 = key<32, 32>;

} // namespace mallard

template <unsigned IndexBits, unsigned GenerationBits, class Tag>
struct std::hash<mallard::key<IndexBits, GenerationBits, Tag>> {
    std::size_t operator()(mallard::key<IndexBits, GenerationBits, Tag> k) const noexcept
    {
        return std::hash<typename decltype(k)::raw_type>()(k.value());
    }
};
