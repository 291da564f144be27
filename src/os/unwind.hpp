// Call stacks of the calling thread. They are found by the unwind tables that compilers write, and
// on AArch64 by frame pointers.
//
//     constinit thread_local stack_memory last;       // with room for frames
//     stack_change change = walk(last, caller());     // in malloc: the stack of malloc's caller
//
// All functions may be called inside malloc and in signal handlers. They allocate nothing, take no
// lock, and never read memory that is not mapped.
#pragma once

#include "processor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace mallard::os {

/// How the caller of a frame is found.
enum class stack_mode : std::uint8_t {
    unwound,        ///< by the unwind tables
    frame_pointers, ///< by the chain of frame pointers: for code without tables
    caller,         ///< the stack is the caller alone
};

/// The place where a call returns to, and the registers at that moment.
struct call_site {
    std::uintptr_t pc; ///< the return address
    std::uintptr_t sp;
    std::uintptr_t bp;
};

/// Where the calling function returns to. Always inlined.
[[gnu::always_inline]] inline call_site caller() noexcept
{
    auto const* const frame = static_cast<std::uintptr_t const*>(__builtin_frame_address(0));
    return {without_signature(frame[1]), reinterpret_cast<std::uintptr_t>(frame + 2), frame[0]};
}

/// A frame of a call stack. `pc` is a return address. In code that a signal interrupted, `pc` is
/// the address after the first byte of the next instruction. So in both cases `pc - 1` belongs to
/// the right source line.
struct stack_frame {
    std::uintptr_t slot; ///< where on the stack `pc` was read; 0: the frame is never compared
    std::uintptr_t pc;
};

/// The last call stack of one thread. The owner sets only `frames`. All other members may begin as
/// zero bytes, as in thread-local storage.
struct stack_memory {
    std::span<stack_frame> frames; ///< the stack is in frames[0, depth), outermost first. Has room
                                   ///< for at least 128 frames; 8,192 are enough in practice
    std::uint32_t depth = 0;
    bool cut = false; ///< whether outer frames are missing

    /// The part of the thread's own stack that is known to be readable. Not used for the main
    /// thread: glibc says where its stack ends.
    bool bounds_are_known = false;
    bool low_is_final = false;
    std::uintptr_t low = 0;
    std::uintptr_t high = 0;

    /// Makes the next walk return all frames as fresh.
    void forget() noexcept { depth = 0; }
};

/// The largest number of fresh (new) frames of one event. An event with so many frames fills one
/// segment of the ring (src/record/ring.hpp).
constexpr std::uint32_t fresh_frames_max = 2044;

/// How the stack of a thread differs from its last stack. All fields have 32 bits, because a
/// compiler would pass smaller fields through memory.
struct stack_change {
    std::uint32_t kept;  ///< number of outermost frames that have not changed
    std::uint32_t fresh; ///< number of inner frames after them: memory.frames[kept, kept + fresh)
    std::uint32_t cut;   ///< 1: outer frames are missing (code without unwind table, damaged stack)
    std::uint32_t gap;   ///< 1: callers of the fresh frames are missing (the stack is too deep)
};

/// Walks the stack from `from` outwards until a frame and all outer frames are the same as in the
/// last stack. Stores the current stack in `memory`. Each thread needs its own `stack_memory`.
///
/// If the stack has too many frames for `memory.frames`, or more than `fresh_frames_max` fresh
/// ones, only the innermost fresh frames are stored, and `gap` is 1.
stack_change walk(stack_memory& memory, call_site from,
                  stack_mode mode = stack_mode::unwound) noexcept;

/// Writes the return addresses of the callers of the frame `from`, innermost first, and returns
/// their number. Does not use or change a last stack.
std::size_t walk(std::span<void*> into, call_site from) noexcept;

/// Clears the cache of unwind rules and the list of known modules. Must be called after dlclose,
/// since other code may then be loaded at the same addresses.
void forget_code() noexcept;

/// A module in which a walk found a return address.
struct code_module {
    std::uintptr_t begin; ///< where its first segment is mapped
    std::uintptr_t end;
    const char* path; ///< from the dynamic linker; "" for the program itself
};

/// The module that has code at `pc - 1`, without a path if there is none.
code_module module_of(std::uintptr_t pc) noexcept;

/// Where the function with code at `pc - 1` begins; 0 if the module has no unwind table for it.
/// Code that was inlined belongs to the function into which it was inlined.
std::uintptr_t function_begin(std::uintptr_t pc) noexcept;

/// Whether the return address `pc` is still in its place on the stack. `slot` is that of a frame on
/// the thread's own stack, whose memory can be read as long as the thread runs.
bool is_in_place(std::uintptr_t slot, std::uintptr_t pc) noexcept;

/// Calls `hook` when a walk first finds an address in a module, and again after `forget_code`. Two
/// threads may both report the same module. The hook runs inside of `walk`.
void on_new_module(void (*hook)(code_module const&) noexcept) noexcept;

} // namespace mallard::os
