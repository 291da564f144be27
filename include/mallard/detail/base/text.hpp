// Writes text into a buffer, without allocations and without a locale.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

#include <cstddef>
#include <cstdint>

namespace mallard {

/// Writes text into a buffer of the caller. Characters that do not fit are counted, but not
/// written.
class text_writer {
public:
    constexpr text_writer(char* first, std::size_t bytes) noexcept : first_(first), bytes_(bytes) {}

    constexpr text_writer& operator<<(char c) noexcept
    {
        if (needed_ < bytes_)
            first_[needed_] = c;
        needed_ += 1;
        return *this;
    }

    constexpr text_writer& operator<<(const char* text) noexcept
    {
        while (*text != '\0')
            *this << *text++;
        return *this;
    }

    constexpr text_writer& operator<<(std::size_t number) noexcept
    {
        char digits[20];
        int count = 0;
        do {
            digits[count++] = static_cast<char>('0' + number % 10);
            number /= 10;
        } while (number != 0);
        while (count > 0)
            *this << digits[--count];
        return *this;
    }

    text_writer& operator<<(const void* address) noexcept
    {
        *this << "0x";
        auto const value = reinterpret_cast<std::uintptr_t>(address);
        int shift = 8 * sizeof value - 4;
        while (shift > 0 && (value >> shift) == 0)
            shift -= 4;
        for (; shift >= 0; shift -= 4)
            *this << "0123456789abcdef"[(value >> shift) & 15];
        return *this;
    }

    constexpr std::size_t needed() const noexcept { return needed_; }
    constexpr std::size_t written() const noexcept { return needed_ < bytes_ ? needed_ : bytes_; }

private:
    char* first_;
    std::size_t bytes_;
    std::size_t needed_ = 0; // all characters, including those that did not fit
};

} // namespace mallard
