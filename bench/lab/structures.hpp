// The data structures DS1 to DS12 of Benchmark I of J. Lakos (ACCU 2017), over any allocator. DS1
// to DS4 are a vector or a hash set of ints or strings. DS5 to DS8 are vectors of these four
// structures, and DS9 to DS12 are hash sets of these four structures.
#pragma once

#include <bench/barrier.hpp>
#include <bench/lab/text.hpp>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace mallard::bench::lab {

template <class Allocator, class T>
using rebound = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;

template <class Allocator>
using text_over = std::basic_string<char, std::char_traits<char>, rebound<Allocator, char>>;

template <class Allocator, class T>
using vector_over = std::vector<T, rebound<Allocator, T>>;

template <class Allocator, class T, class Hash, class Equal = std::equal_to<>>
using set_over = std::unordered_set<T, Hash, Equal, rebound<Allocator, T>>;

template <class T>
inline constexpr bool is_text = false;
template <class Traits, class Allocator>
inline constexpr bool is_text<std::basic_string<char, Traits, Allocator>> = true;

// Hashes a string. The function is not noexcept, so that libstdc++ caches its results, as it does
// for std::hash<std::string>.

struct hash_of_text {
    std::size_t operator()(std::string_view text) const
    {
        return std::hash<std::string_view>()(text);
    }
};

/// Hashes an inner structure by its address, as Lakos's program does.
struct hash_of_address {
    template <class T>
    std::size_t operator()(T const& inner) const
    {
        return std::hash<T const*>()(&inner);
    }
};
struct same_address {
    template <class T>
    bool operator()(T const& a, T const& b) const
    {
        return &a == &b;
    }
};

/// Hashes one word of each element. The result does not depend on the order of the elements.
struct hash_of_content {
    template <class T>
    std::size_t operator()(T const& inner) const
    {
        std::size_t sum = inner.size();
        for (auto const& element : inner)
            sum += word_of(element) * 0x9E37'79B9'7F4A'7C15;
        return sum;
    }

private:
    static std::size_t word_of(int value) { return static_cast<std::size_t>(value); }
    template <class Text>
    static std::size_t word_of(Text const& text)
    {
        std::size_t word = 0;
        std::memcpy(&word, text.data(), sizeof word); // no string is shorter than a word
        return word;
    }
};

/// Writes to the first bytes of an element. An int is not read, because reading would measure how
/// fast the processor forwards the stored value, which takes 1.3 or 2.9 ns depending on the
/// address.
inline void touch_first(int& element) noexcept
{
    *const_cast<int volatile*>(&element) = -1;
}
template <class Text>
void touch_first(Text& element) noexcept
{
    element.front() = '~';
    keep(element.data());
}

/// Adds `count` elements, numbered from `first`, to one of the flat structures DS1 to DS4.
template <class T, class A>
void fill(std::vector<T, A>& into, std::size_t first, std::size_t count, words& text)
{
    for (std::size_t i = first; i < first + count; ++i) {
        if constexpr (is_text<T>)
            into.emplace_back(text());
        else
            into.emplace_back(static_cast<T>(i));
        touch_first(into.back());
    }
}

template <class T, class H, class E, class A>
void fill(std::unordered_set<T, H, E, A>& into, std::size_t first, std::size_t count, words& text)
{
    for (std::size_t i = first; i < first + count; ++i) {
        if constexpr (is_text<T>)
            keep(&*into.emplace(text()).first);
        else
            keep(&*into.emplace(static_cast<T>(i)).first);
    }
}

/// Adds an inner structure of `count` elements to a vector (DS5 to DS8).
template <class Leaf, class A>
void add_leaf(std::vector<Leaf, A>& into, std::size_t first, std::size_t count, words& text)
{
    into.emplace_back();
    into.back().reserve(count);
    fill(into.back(), first, count, text);
}

/// Inserts an empty inner structure into a hash set (DS9 to DS12), then fills it. This order is
/// possible because the set hashes the inner structure by its address.
template <class Leaf, class A>
void add_leaf(std::unordered_set<Leaf, hash_of_address, same_address, A>& into, std::size_t first,
              std::size_t count, words& text)
{
    Leaf& leaf = const_cast<Leaf&>(*into.emplace().first);
    leaf.reserve(count);
    fill(leaf, first, count, text);
}

/// Fills an inner structure, then inserts it, because the set hashes it by its content.
template <class Leaf, class E, class A>
void add_leaf(std::unordered_set<Leaf, hash_of_content, E, A>& into, std::size_t first,
              std::size_t count, words& text)
{
    Leaf leaf(into.get_allocator());
    leaf.reserve(count);
    fill(leaf, first, count, text);
    into.insert(std::move(leaf));
}

/// The bytes of a set's node: the element, the link, and the hash if the set caches the hash.
template <class T>
inline constexpr std::size_t node_bytes = sizeof(T) + (std::is_same_v<T, int> ? 12 : 16);

/// Calls `visit(address, bytes)` for each block of a structure that can be found through the
/// structure's interface.
template <class Visit>
void visit_blocks(int, Visit&)
{
}
template <class Traits, class A, class Visit>
void visit_blocks(std::basic_string<char, Traits, A> const& text, Visit& visit)
{
    visit(text.data(), text.capacity() + 1);
}
template <class T, class A, class Visit>
void visit_blocks(std::vector<T, A> const& all, Visit& visit)
{
    visit(all.data(), all.capacity() * sizeof(T));
    for (T const& element : all)
        visit_blocks(element, visit);
}
template <class T, class H, class E, class A, class Visit>
void visit_blocks(std::unordered_set<T, H, E, A> const& all, Visit& visit)
{
    for (T const& element : all) {
        visit(&element, node_bytes<T>);
        visit_blocks(element, visit);
    }
}

} // namespace mallard::bench::lab
