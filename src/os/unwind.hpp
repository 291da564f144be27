// Walks the call stack of the calling thread, with the unwind tables that compilers write, and on
// AArch64 with frame pointers.
//
//     constinit thread_local stack_memory last;       // with room for frames
//     stack_change change = walk(last, caller());     // in malloc: the stack of malloc's caller
//
// All functions may be called inside malloc and in signal handlers. They allocate no memory, lock
// no lock, and never read memory that is not mapped.
#pragma once

#include "processor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace mallard::os {

/// The method of finding the caller of a frame.
enum class stack_mode : std::uint8_t {
    unwound,        ///< with the unwind tables
    frame_pointers, ///< with the chain of frame pointers, for code without tables
    caller,         ///< the stack consists only of the caller
};

/// The return address of a call, and the registers after the return.
struct call_site {
    std::uintptr_t pc; ///< the return address
    std::uintptr_t sp;
    std::uintptr_t bp;
};

/// Returns the call site to which the calling function will return. Must be inlined.
[[gnu::always_inline]] inline call_site caller() noexcept
{
    auto const* const frame = static_cast<std::uintptr_t const*>(__builtin_frame_address(0));
    return {without_signature(frame[1]), reinterpret_cast<std::uintptr_t>(frame + 2), frame[0]};
}

/// A frame of a call stack. `pc` is a return address. In code that a signal interrupted, `pc` is
/// the address after the first byte of the next instruction. So in both cases `pc - 1` belongs to
/// the correct source line.
struct stack_frame {
    std::uintptr_t slot; ///< the stack address of `pc`; 0 if the frame is never compared
    std::uintptr_t pc;
};

/// The last call stack of one thread. The owner sets only `frames`. All other members may be
/// zero-initialised, as in thread-local storage.
struct stack_memory {
    std::span<stack_frame> frames; ///< the stack is in frames[0, depth), outermost first. Must have
                                   ///< room for 128 frames; 8,192 are enough in practice
    std::uint32_t depth = 0;
    bool cut = false; ///< whether outer frames are missing

    /// The part of the thread's own stack that is known to be readable. Not used for the main
    /// thread, because glibc stores where its stack ends.
    bool bounds_are_known = false;
    bool low_is_final = false;
    std::uintptr_t low = 0;
    std::uintptr_t high = 0;

    /// Discards the stack, so that the next walk returns all frames as new (`fresh`).
    void forget() noexcept { depth = 0; }
};

/// The largest number of new (fresh) frames in one event. An event with this number of frames fills
/// one segment of the ring (src/record/ring.hpp).
constexpr std::uint32_t fresh_frames_max = 2044;

/// The difference between the stack of a thread and its last stack. All fields have 32 bits,
/// because a compiler would pass smaller fields through memory.
struct stack_change {
    std::uint32_t kept;  ///< number of outermost frames that have not changed
    std::uint32_t fresh; ///< number of new inner frames: memory.frames[kept, kept + fresh)
    std::uint32_t cut;   ///< 1: outer frames are missing (code without unwind table, corrupt stack)
    std::uint32_t gap;   ///< 1 if callers of the new frames are missing (the stack is too deep)
};

/// Walks the stack outwards, beginning at `from`, until a frame and all outer frames are the same
/// as in the last stack. Stores the current stack in `memory`. Each thread needs its own
/// `stack_memory`.
///
/// If the stack has too many frames for `memory.frames`, or more than `fresh_frames_max` new
/// frames, only the innermost new frames are stored, and `gap` is 1.
stack_change walk(stack_memory& memory, call_site from,
                  stack_mode mode = stack_mode::unwound) noexcept;

/// Walks the stack from the frame `from`. Writes the return addresses of its callers to `into`,
/// innermost first, and returns their number. Uses no `stack_memory`.
std::size_t walk(std::span<void*> into, call_site from) noexcept;

/// Clears the cache of unwind rules and the list of known modules. Must be called after dlclose,
/// since other code may then be loaded at the same addresses.
void forget_code() noexcept;

/// A module in which a walk found a return address.
struct code_module {
    std::uintptr_t begin; ///< where the module's first segment is mapped
    std::uintptr_t end;
    const char* path; ///< from the dynamic linker; "" for the program itself
};

/// Returns the module that contains the code at `pc - 1`. If there is no such module, the result
/// has no path.
code_module module_of(std::uintptr_t pc) noexcept;

/// Returns the start address of the function that contains the code at `pc - 1`, or 0 if the module
/// has no unwind table for this code. Inlined code belongs to the function into which it was
/// inlined.
std::uintptr_t function_begin(std::uintptr_t pc) noexcept;

/// Reads a word of the stack. The function is not instrumented, because AddressSanitizer would
/// report a word that is not part of a variable.
[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] inline std::uintptr_t
word_at(std::uintptr_t address) noexcept
{
    return *reinterpret_cast<std::uintptr_t const*>(address);
}

/// Returns whether the return address `pc` is still stored at `slot` on the stack. `slot` must be
/// from a frame on the thread's own stack, whose memory can be read as long as the thread runs.
inline bool is_in_place(std::uintptr_t slot, std::uintptr_t pc) noexcept
{
    return without_signature(word_at(slot)) == pc;
}

/// Sets a function that `walk` calls when it first finds an address in a module, and again after
/// `forget_code`. Two threads may both report the same module.
void on_new_module(void (*hook)(code_module const&) noexcept) noexcept;

} // namespace mallard::os
