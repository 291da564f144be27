// How a call came about: a few return addresses, and what they are called in a report.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

#include <array>
#include <cstddef>
#include <span>

namespace mallard {

namespace os {

/// Fills `into` with return addresses, from that of the calling function on outwards,
/// and says how many there were. By the tables of exceptions, so no frame pointers are needed;
/// allocates nothing. About a microsecond for each.
std::size_t record_calls(std::span<void*> into) noexcept;

/// Whether `record_calls` finds any, whoever asks; true at first.
void want_calls(bool wanted) noexcept;

/// A line for each: "    WHAT, MODULE+0xOFFSET". Allocates nothing.
void print_calls(const char* what, std::span<void* const> calls) noexcept;

/// The help line that turns them into lines of source.
void print_how_to_read(std::span<void* const> calls) noexcept;

} // namespace os

/// Calls, and how to print them. Without calls there is nothing to print: so a
/// program that records none needs nothing of src/os.
struct call_stack {
    struct printer {
        void (*calls)(const char* what, std::span<void* const>) noexcept;
        void (*help)(std::span<void* const>) noexcept;
    };

    std::span<void* const> calls{};
    const printer* print = nullptr;
};

/// The innermost `Frames` calls. `record` is always inlined, so that the function which
/// calls it is the one that is left out.
template <std::size_t Frames>
class recorded_calls {
    static constexpr call_stack::printer printer{os::print_calls, os::print_how_to_read};

public:
    [[gnu::always_inline]] void record() noexcept { count_ = os::record_calls(calls_); }
    call_stack view() const noexcept { return {std::span(calls_).first(count_), &printer}; }

private:
    std::array<void*, Frames> calls_{};
    std::size_t count_ = 0;
};

template <>
class recorded_calls<0> {
public:
    static void record() noexcept {}
    static call_stack view() noexcept { return {}; }
};

} // namespace mallard
