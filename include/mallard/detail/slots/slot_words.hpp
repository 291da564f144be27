// What stands in the words of keyed slots, wherever those are.
#pragma once

#include <mallard/detail/base/bits.hpp>
#include <mallard/key.hpp>

namespace mallard {

/// Each slot of a keyed pool has a word beside its value:
///
///     live        { generation, own index }     its key
///     free        { generation, another index } the key that the next free slot gives
///     last free   { 0, 0 }
///     detached    { generation, 0 }             its key, but for the index
///     retired     { 0, 0 }                      for ever
///     fresh       { 0, 0 }                      as memory comes from the system
///
/// So one comparison of a whole key with the word of the slot that it addresses says
/// whether it is alive: no other state has the slot's own index. The list of free
/// slots needs nothing else, and has each key ready before it is given.
///
/// Slot 0 has no value, and its word is { 0, 1 }: index 0 can mean none, and null, that
/// would equal a fresh word, addresses a word that is not.
///
/// An index is cut to a power of two of slots, by a mask, before it is used. Any
/// integer addresses some slot then, and if it is not that slot's own it differs from
/// its word all the same: every index in a word is that of a slot there is.
///
/// (That a free slot's word can hold list and generation at once is known from EnTT;
/// that the link may be the next slot's whole key, we have not seen elsewhere.)
template <class Key>
struct slot_words {
    using word = typename Key::raw_type;

    static constexpr word of_slot_0 = 1;
    static constexpr std::size_t slots_max = std::size_t{Key::index_mask} + 1;

    /// Slots 0 and 1 of a pool that has no memory: no key is alive.
    static constexpr word none[2] = {of_slot_0, 0};

    static constexpr std::size_t index(word w) noexcept { return w & Key::index_mask; }
    static constexpr word first(std::size_t i) noexcept
    {
        return static_cast<word>(i) | Key::one_generation;
    }
    static constexpr word detached(word key) noexcept
    {
        return key & static_cast<word>(~Key::index_mask);
    }
    static constexpr bool is_detached(word w) noexcept { return w != 0 && index(w) == 0; }

    /// Of the same slot. Below `key` when there was none left.
    static constexpr word after(word key) noexcept
    {
        return static_cast<word>(key + Key::one_generation) & Key::value_max;
    }
};

/// The bits that say which slots are live, 64 at a time.
using slot_bits = std::uint64_t;
inline constexpr std::size_t slots_per_bits = 64;

constexpr slot_bits slot_bit(std::size_t i) noexcept
{
    return slot_bits{1} << i % slots_per_bits;
}

} // namespace mallard
