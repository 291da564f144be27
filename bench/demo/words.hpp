// Splits text into words: sequences of letters, digits, underscores and non-ASCII characters.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace mallard::demo {

inline constexpr auto word_characters = [] {
    std::array<bool, 256> is{};
    for (std::size_t c = 0; c < is.size(); ++c)
        is[c] = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                c == '_' || c >= 128;
    return is;
}();

constexpr bool in_word(char c) noexcept
{
    return word_characters[static_cast<unsigned char>(c)];
}

/// Returns the length of the word at the start of `text`, or 0 if `text` does not start with a
/// word.
constexpr std::size_t word_length(std::string_view text) noexcept
{
    std::size_t length = 0;
    while (length < text.size() && in_word(text[length]))
        ++length;
    return length;
}

/// Calls `f(word, line)` for each word, in order, until `f` returns false. The words are views into
/// `text`.
template <class F>
void for_each_word(std::string_view text, F f)
{
    std::uint32_t line = 1;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t const length = word_length(text.substr(at));
        if (length > 0 && !f(text.substr(at, length), line))
            return;
        at += length;
        if (length == 0)
            line += text[at++] == '\n';
    }
}

/// Returns the FNV-1a hash, which is the same on every machine and for every type of string. So
/// answers can be compared, and hash tables have the same layout under every strategy.
constexpr std::uint64_t hash_of(std::string_view text) noexcept
{
    std::uint64_t hash = 0xcbf29ce484222325;
    for (char const c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

} // namespace mallard::demo
