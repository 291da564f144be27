// What failed last in each thread of a C program.
#pragma once

#include "api.hpp"

#include <cstdint>

namespace mallard::c {

/// In `text` stands %s for a word of static life, %n for a number, %i for an int
/// and %p for an address: the values of a failure, in their order. Three lines.
struct message {
    mallard_error code;
    const char* text;
};

/// What takes the place of a % in a message.
class value {
public:
    constexpr value() noexcept = default;
    value(const char* word) noexcept : bits(reinterpret_cast<std::uintptr_t>(word)) {}
    value(const void* address) noexcept : bits(reinterpret_cast<std::uintptr_t>(address)) {}
    constexpr value(std::size_t number) noexcept : bits(number) {}
    constexpr value(int number) noexcept : bits(static_cast<std::uintptr_t>(number)) {}

    std::uintptr_t bits = 0;
};

/// Sets errno and remembers the failure; the text is put together by
/// `mallard_explain`, if anyone asks. Failing is cheap, as a program may do it in
/// a loop, and takes no memory, as there may be none.
[[gnu::cold]] mallard_error fail(const message& what, value a = {}, value b = {}, value c = {},
                                 value d = {}, value e = {}) noexcept;

/// The same for those who verify: false.
template <class... Values>
bool reject(const message& what, Values... values) noexcept
{
    fail(what, values...);
    return false;
}

} // namespace mallard::c
