// Records and prints call stacks. The return addresses are found with the unwind tables, the names
// of modules come from the dynamic linker.
#include "unwind.hpp"

#include <mallard/detail/base/call_stack.hpp>
#include <mallard/detail/base/fatal.hpp>

#include <atomic>

#include <dlfcn.h>
#include <link.h>

namespace mallard::os {
namespace {

constinit std::atomic<bool> calls_are_wanted{true};

void say(const char* text) noexcept
{
    (fatal_message() << text).print();
}

struct place {
    const char* module = nullptr; // null for code outside any module, such as JIT code
    std::uintptr_t offset = 0;
};

/// Returns the module of a call and the offset at which addr2line finds the call. A return address
/// points to the next instruction, which may belong to another source line, so one byte is
/// subtracted.
place place_of(const void* call) noexcept
{
    Dl_info info{};
    auto const address = reinterpret_cast<std::uintptr_t>(call) - 1;
    if (::dladdr(call, &info) == 0 || info.dli_fbase == nullptr)
        return {.offset = address};
    // A program that is not position-independent has the same addresses in memory as in its file.
    bool const is_fixed = static_cast<ElfW(Ehdr) const*>(info.dli_fbase)->e_type == ET_EXEC;
    auto const base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    return {info.dli_fname, is_fixed ? address : address - base};
}

} // namespace

[[gnu::noinline]] std::size_t record_calls(std::span<void*> into) noexcept
{
    if (!calls_are_wanted.load(std::memory_order_relaxed))
        return 0;
    return walk(into, caller());
}

void want_calls(bool wanted) noexcept
{
    calls_are_wanted.store(wanted, std::memory_order_relaxed);
}

void print_calls(const char* what, std::span<void* const> calls) noexcept
{
    for (const void* const call : calls) {
        place const at = place_of(call);
        (fatal_message() << "    " << what
                         << (at.module == nullptr ? "an unknown module" : at.module) << "+"
                         << reinterpret_cast<const void*>(at.offset) << "\n")
            .print();
    }
}

void print_how_to_read(std::span<void* const> calls) noexcept
{
    place const first = calls.empty() ? place{} : place_of(calls.front());
    if (first.module == nullptr) {
        say("  help: `info symbol ADDRESS` in gdb names the function of an address\n");
        return;
    }
    say("  help: `addr2line -Cfipe ");
    say(first.module);
    for (const void* const call : calls) {
        place const at = place_of(call);
        if (at.module == first.module)
            (fatal_message() << " " << reinterpret_cast<const void*>(at.offset)).print();
    }
    say("` prints the source lines\n");
}

} // namespace mallard::os
