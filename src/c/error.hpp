// The record of the last failure of each thread of a C program.
#pragma once

#include "api.hpp"

#include <cstddef>
#include <cstdint>

namespace mallard::c {

/// An error code, and a text of three lines. Each % in `text` is replaced by the next value of the
/// failure. %s is a string with static lifetime, %n a size, %i an int, and %p an address.
struct message {
    mallard_error code;
    const char* text;
};

/// A value that replaces a % in a message.
class value {
public:
    constexpr value() noexcept = default;
    value(const char* word) noexcept : bits(reinterpret_cast<std::uintptr_t>(word)) {}
    value(const void* address) noexcept : bits(reinterpret_cast<std::uintptr_t>(address)) {}
    constexpr value(std::size_t number) noexcept : bits(number) {}
    constexpr value(int number) noexcept : bits(static_cast<std::uintptr_t>(number)) {}

    std::uintptr_t bits = 0;
};

/// Records a failure and sets errno. A program may fail in a loop, so this function must be cheap.
/// Memory may be short, so this function does not allocate. Therefore `mallard_explain` formats the
/// text later.
[[gnu::cold]] mallard_error fail(const message& what, value a = {}, value b = {}, value c = {},
                                 value d = {}, value e = {}) noexcept;

/// Records a failure and returns false.
template <class... Values>
bool reject(const message& what, Values... values) noexcept
{
    fail(what, values...);
    return false;
}

} // namespace mallard::c
