// Numbers that tell one type from another in memory that outlives a program.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

#include <cstdint>
#include <string_view>

namespace mallard {

/// FNV-1a (Fowler, Noll, Vo; 1991). Two texts that differ in one byte never hash alike.
constexpr std::uint64_t hash_of(std::string_view text,
                                std::uint64_t hash = 0xcbf29ce484222325) noexcept
{
    for (char const c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

/// The same of a number, byte by byte.
constexpr std::uint64_t hash_of(std::uint64_t number, std::uint64_t hash) noexcept
{
    for (int shift = 0; shift < 64; shift += 8)
        hash = (hash ^ (number >> shift & 0xff)) * 0x100000001b3;
    return hash;
}

/// A text with the name of `T` in it, and otherwise the same for all.
template <class T>
constexpr const char* text_naming() noexcept
{
    return __PRETTY_FUNCTION__; // "... [with T = node]", "... [T = node]"
}

/// So that it is the same of two compilers, which word the rest differently.
constexpr std::string_view after_equals(std::string_view text) noexcept
{
    return text.substr(text.find("T = "));
}

/// What is compared when an object made by one program is found by another: the name, size
/// and alignment of its type. Members that change places go unnoticed, and two compilers may
/// spell a template's arguments differently. Specialise it for a number of your own, which
/// you raise with each change:
///
///     template <>
///     inline constexpr std::uint64_t mallard::layout_hash<board> = 3;
template <class T>
inline constexpr std::uint64_t layout_hash =
    hash_of(alignof(T), hash_of(sizeof(T), hash_of(after_equals(text_naming<T>()))));

} // namespace mallard
