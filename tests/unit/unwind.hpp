// A walk of the call stack that tests compare with the exception unwinder of the C++ runtime, which
// reads the same unwind tables.
#pragma once

#include "../../src/os/unwind.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include <alloca.h>
#include <unwind.h>

namespace mallard::testing {

using os::caller;
using os::fresh_frames_max;
using os::stack_change;
using os::stack_frame;
using os::stack_memory;
using os::stack_mode;
using os::walk;

using stack = std::vector<std::uintptr_t>; // return addresses, innermost first

inline _Unwind_Reason_Code append(_Unwind_Context* at, void* argument)
{
    auto& into = *static_cast<stack*>(argument);
    int is_interrupted = 0;
    std::uintptr_t const pc = _Unwind_GetIPInfo(at, &is_interrupted);
    if (pc == 0)
        return _URC_END_OF_STACK;
    into.push_back(pc + static_cast<std::uintptr_t>(is_interrupted));
    return _URC_NO_REASON;
}

/// A walk with its memory, and a reader that rebuilds each stack from the changes that the walks
/// report.
struct walked {
    std::vector<stack_frame> room;
    stack_memory memory;
    stack_change change{};
    stack reader;   // outermost first
    stack expected; // the stack that the exception unwinder found, innermost first

    /// Allocates all memory in the constructor, because signal handlers use the object.
    explicit walked(std::size_t frames = 8192) : room(frames)
    {
        memory.frames = room;
        reader.reserve(frames);
        expected.reserve(frames);
    }

    stack found() const { return {reader.rbegin(), reader.rend()}; }

    void read(stack_change next)
    {
        change = next;
        ASSERT_LE(change.kept, reader.size());
        ASSERT_LE(change.fresh, fresh_frames_max);
        reader.resize(change.kept);
        for (auto const& frame : memory.frames.subspan(change.kept, change.fresh))
            reader.push_back(frame.pc);
        ASSERT_EQ(reader.size(), memory.depth);
    }

    /// Walks the stack, starting at the calling function.
    [[gnu::noinline]] void look(stack_mode mode = stack_mode::unwound)
    {
        read(walk(memory, caller(), mode));
    }

    /// Walks like `look`, and compares the stack with that of the exception unwinder.
    [[gnu::noinline]] void compare(bool is_cut = false)
    {
        read(walk(memory, caller()));
        expected.clear();
        _Unwind_Backtrace(append, &expected);
        expected.erase(expected.begin()); // the frame of this function
        if (!std::equal(reader.rbegin(), reader.rend(), expected.begin(), expected.end())) {
            EXPECT_EQ(found(), expected);
        }
        EXPECT_EQ(change.cut, is_cut);
        EXPECT_FALSE(change.gap);
    }
};

/// Calls `f` at the bottom of `depth` nested calls of this function.
[[gnu::noinline]] inline void deep(int depth,
                                   std::function<void()> const& f) // NOLINT(misc-no-recursion)
{
    int volatile left = depth;
    if (left == 0)
        f();
    else
        deep(depth - 1, f);
    left = 0; // prevents a tail call
}

/// Calls the walk in a function with an aligned stack and a frame size that the compiler does not
/// know.
[[gnu::noinline]] inline void with_aligned_frame(walked& w, std::size_t bytes)
{
    alignas(64) char volatile aligned[64] = {};
    std::memset(alloca(bytes), 1, bytes);
    deep(2, [&] { w.compare(); });
    aligned[1] = aligned[0];
}

} // namespace mallard::testing
