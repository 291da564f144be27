// A hash of a type, by which a program recognises the type in memory from an earlier run.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

#include <cstdint>
#include <string_view>

namespace mallard {

/// Computes FNV-1a (Fowler, Noll, Vo; 1991). Two texts of equal length that differ in exactly one
/// byte always have different hashes.
constexpr std::uint64_t hash_of(std::string_view text,
                                std::uint64_t hash = 0xcbf29ce484222325) noexcept
{
    for (char const c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

/// Hashes a number, byte by byte.
constexpr std::uint64_t hash_of(std::uint64_t number, std::uint64_t hash) noexcept
{
    for (int shift = 0; shift < 64; shift += 8)
        hash = (hash ^ (number >> shift & 0xff)) * 0x100000001b3;
    return hash;
}

/// Returns a text that contains the name of `T`.
template <class T>
constexpr const char* text_naming() noexcept
{
    return __PRETTY_FUNCTION__; // "... [with T = node]", "... [T = node]"
}

/// Returns the part of `text` that begins with the name of the type. This part is the same for
/// different compilers.
constexpr std::string_view after_equals(std::string_view text) noexcept
{
    return text.substr(text.find("T = "));
}

/// A hash of the name, size and alignment of a type. A program compares the hash when it finds an
/// object that another program made. The hash fails in two cases. A change in the order of members
/// does not change the hash. Two compilers may give different hashes, because they spell template
/// arguments differently. To cover both cases, specialise `layout_hash` with your own number, and
/// increase the number with each change:
///
///     template <>
///     inline constexpr std::uint64_t mallard::layout_hash<board> = 3;
template <class T>
inline constexpr std::uint64_t layout_hash =
    hash_of(alignof(T), hash_of(sizeof(T), hash_of(after_equals(text_naming<T>()))));

} // namespace mallard
