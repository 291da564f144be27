// Recorded call stacks (a few return addresses), and how to print them.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

#include <array>
#include <cstddef>
#include <span>

namespace mallard {

namespace os {

/// Writes return addresses to `into`, from the calling function outwards, and returns their number.
/// Uses the unwind tables, so no frame pointers are needed. Allocates nothing. Takes some 10 ns for
/// each frame, and 100 ns if the return address was not looked up recently.
std::size_t record_calls(std::span<void*> into) noexcept;

/// Turns `record_calls` on or off for the whole process. The default is on.
void want_calls(bool wanted) noexcept;

/// Prints a line for each call: "    WHAT, MODULE+0xOFFSET". Allocates nothing.
void print_calls(const char* what, std::span<void* const> calls) noexcept;

/// Prints a help line with the command that turns the addresses into source lines.
void print_how_to_read(std::span<void* const> calls) noexcept;

} // namespace os

/// A recorded call stack, and functions to print it. The functions are called by pointers, so that
/// a program that records no calls links nothing of src/os.
struct call_stack {
    struct printer {
        void (*calls)(const char* what, std::span<void* const>) noexcept;
        void (*help)(std::span<void* const>) noexcept;
    };

    std::span<void* const> calls{};
    const printer* print = nullptr;
};

/// Storage for the innermost `Frames` calls of a stack. `record` is always inlined, so the first
/// recorded frame is the caller of the function that calls `record`.
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
