// The parse tree that both readers (for source text and for JSON) build. Each node has a text and
// child nodes. All nodes of a tree get their memory from the allocator of one strategy.
#pragma once

#include <mallard/winked.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mallard::demo {

template <class S>
using string_of =
    std::basic_string<char, std::char_traits<char>, typename S::template allocator_type<char>>;

template <class S, class T>
using vector_of = std::vector<T, typename S::template allocator_type<T>>;

enum class part : std::uint8_t {
    document,
    block,     ///< in source: a block; `text` is its opening bracket
    statement, ///< text to the end of a line or to a semicolon
    word,
    string,
    comment,
    sign,
    object, ///< an object of JSON
    array,
    member, ///< `text` is the key, the only child is the value
    number,
    literal
};

template <class S>
struct node {
    part is;
    string_of<S> text;
    vector_of<S, node> parts;

    /// Makes a node without text and without children, in the memory of `allocator`.
    template <class Allocator>
    node(part kind, std::string_view words, const Allocator& allocator)
        : is(kind), text(words, allocator), parts(allocator)
    {
    }

    node& add(node&& part_of_it)
    {
        parts.push_back(std::move(part_of_it));
        return parts.back();
    }
};

/// One tree for each document.
template <class S>
using forest = vector_of<S, node<S>>;

/// The maximum depth of a tree. The contents of deeper blocks of source are added to the enclosing
/// block, and deeper JSON is rejected. Destroying a tree recurses, so without the limit a file of a
/// million brackets would overflow the stack.
inline constexpr std::size_t depth_max = 200;

} // namespace mallard::demo

/// A node gets all its memory from the allocator with which it was constructed.
template <class S>
inline constexpr bool mallard::enable_wink_out<mallard::demo::node<S>> = true;
