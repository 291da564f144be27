// Faults, which describe the bugs that `checked` and `guarded` find, and the messages and handlers
// of faults.
//
// `checked` or `guarded` describes a bug as a `fault` and calls its handler with the fault. The
// default handler, `stop_at_faults`, prints a message and aborts.
#pragma once

#include <mallard/detail/base/bits.hpp>
#include <mallard/detail/base/call_stack.hpp>

#include <concepts>
#include <type_traits>

namespace mallard {

/// The kinds of bugs.
enum class fault_kind {
    double_free,      ///< a free of a block that is free already
    foreign_free,     ///< a free of an address at which no block is known
    interior_free,    ///< a free of an address inside a block
    wrong_layout,     ///< a free with another size or alignment than the allocation
    overrun,          ///< a write after the end of a block
    underrun,         ///< a write before the start of a block
    write_after_free, ///< a write into a freed block
    touch_outside,    ///< an access before or after a guarded block
    touch_after_free, ///< an access to a freed guarded block
    leak              ///< blocks in use when the allocator is destroyed
};

/// What is known about the block that a fault concerns. This is a copy of the block's record.
struct faulty_block {
    const std::byte* data = nullptr; ///< the first byte of the block
    std::size_t bytes = 0;           ///< the requested size
    std::size_t align = 1;           ///< the requested alignment
    std::uint64_t number = 0;        ///< counts the allocations of this allocator, from 1
    call_stack allocated{};          ///< empty, unless calls are recorded
    call_stack freed{};              ///< empty, unless calls are recorded and the block was freed
};

/// A description of one bug. Valid only during the call of the handler, so copy the members that
/// you need later.
struct fault {
    fault_kind kind;       ///< which kind of bug
    const char* allocator; ///< the name of the allocator
    const void* at;        ///< the freed or accessed address, or the first overwritten byte
    layout said{0, 1};     ///< wrong_layout: the layout given to the free
    std::size_t count = 0; ///< leak: the number of blocks
    std::size_t bytes = 0; ///< leak: the bytes of all blocks
    /// The block that the fault concerns. Empty for foreign_free; for a leak, the first few leaked
    /// blocks, oldest first.
    std::span<const faulty_block> blocks{};
};

namespace faults {

/// Prints `text` as a message of the library, without allocating.
inline void say(const char* text) noexcept
{
    (fatal_message() << text).print();
}

/// The fixed parts of a message. The first line of a message is `mallard: BEFORE address AFTER
/// "name"`, and the last line is `help: HELP`.
struct text {
    const char* before; ///< before the address, or before the bytes of a leak
    const char* after;  ///< after the address, before the name of the allocator
    const char* help;   ///< what to do next
};

/// A help line that explains how to find the caller of a bad `deallocate`.
inline constexpr const char* find_the_caller =
    "`break mallard::stop_at_fault` in gdb shows who called deallocate";
/// A help line that explains how to record the calls that allocated and freed a block.
inline constexpr const char* record_the_calls =
    "`.frames = 8` in the options, for malloc MALLARD_CALLS=1, records the calls that allocate and "
    "free";
/// A help line for overwritten bytes, which are found only some time after the write.
inline constexpr const char* stop_at_the_write =
    "`guarded` instead of `checked`, -fsanitize=address or valgrind stop at the write itself";

/// A help line for an access that stopped the process.
inline constexpr const char* find_the_touch =
    "`bt` in gdb, where the program is now, shows the access";

/// The message texts for each kind of bug.
inline constexpr text texts[] = {
    // in the order of fault_kind
    {"double free of ", " in ", record_the_calls},
    {"free of ", ", which is not a block of ", find_the_caller},
    {"free of ", ", which is inside a block of ", find_the_caller},
    {"free of ", " with a wrong layout in ", find_the_caller},
    {"write to ", ", past the end of a block of ", stop_at_the_write},
    {"write to ", ", before a block of ", stop_at_the_write},
    {"write to ", ", which is in a freed block of ", stop_at_the_write},
    {"use of ", ", which is next to a block of ", find_the_touch},
    {"use of ", ", which is in a freed block of ", find_the_touch},
    {"leak of ", " bytes in ", record_the_calls},
};

/// Returns the message texts for a fault.
inline const text& text_of(const fault& f) noexcept
{
    return texts[static_cast<std::size_t>(f.kind)];
}

/// Prints the line with the state of a block. The line numbers the bytes from the start of the
/// block, so a byte before the block has a negative number.
inline void print_state(const fault& f, const faulty_block& b) noexcept
{
    fatal_message line;
    line << (f.kind == fault_kind::leak ? "    block " : "  block ") << b.number << " (" << b.bytes
         << " bytes at " << b.data << ")";
    std::ptrdiff_t const offset = static_cast<const std::byte*>(f.at) - b.data;
    auto const distance = static_cast<std::size_t>(offset < 0 ? -offset : offset);
    switch (f.kind) {
    case fault_kind::double_free:
        line << " was free already; this call changed nothing";
        break;
    case fault_kind::interior_free:
        line << " is in use; this call changed nothing";
        break;
    case fault_kind::wrong_layout:
        line << " is aligned to " << b.align << "; the call passed " << f.said.bytes
             << " bytes aligned to " << f.said.align << "; the block was freed";
        break;
    case fault_kind::overrun:
    case fault_kind::underrun:
    case fault_kind::write_after_free:
        line << ": byte " << (offset < 0 ? "-" : "") << distance << " was changed";
        break;
    case fault_kind::touch_outside:
    case fault_kind::touch_after_free:
        line << ": the address would be byte " << (offset < 0 ? "-" : "") << distance;
        break;
    case fault_kind::foreign_free: // a foreign free has no block
    case fault_kind::leak:         // a leak has many blocks
        break;
    }
    (line << "\n").print();
}

/// Prints the calls that allocated and freed a block, if they were recorded.
inline void print_calls(const faulty_block& b) noexcept
{
    if (b.allocated.print != nullptr)
        b.allocated.print->calls("allocated by ", b.allocated.calls);
    if (b.freed.print != nullptr)
        b.freed.print->calls("freed by ", b.freed.calls);
}

/// Prints the help line about how to find the source lines of recorded calls. Returns false if no
/// calls were recorded.
inline bool print_how_to_read(const faulty_block& b) noexcept
{
    if (b.allocated.print == nullptr)
        return false;
    constexpr std::size_t most = 32; // calls of the allocation and of the free together
    void* calls[most];
    std::size_t count = 0;
    for (const call_stack& s : {b.allocated, b.freed})
        for (void* const call : s.calls)
            if (count < most)
                calls[count++] = call;
    b.allocated.print->help({calls, count});
    return true;
}

} // namespace faults

/// Prints a fault to stderr in three parts, as in fatal.hpp: what happened, the state, and a help
/// line. Recorded calls and leaked blocks follow the state, indented. Allocates nothing.
MALLARD_COLD inline void print_fault(const fault& f) noexcept
{
    const faults::text& text = faults::text_of(f);
    fatal_message title;
    title << "mallard: " << text.before;
    f.kind == fault_kind::leak ? title << f.bytes : title << f.at;
    (title << text.after << "\"" << f.allocator << "\"\n").print();
    if (f.kind == fault_kind::foreign_free)
        faults::say("  the block was not allocated here, or was freed long ago; "
                    "this call changed nothing\n");
    if (f.kind == fault_kind::leak)
        (fatal_message() << "  " << f.count << " blocks are still in use. The first are:\n")
            .print();
    for (const faulty_block& b : f.blocks) {
        faults::print_state(f, b);
        faults::print_calls(b);
    }
    if (f.blocks.empty() || !faults::print_how_to_read(f.blocks.front()))
        (fatal_message() << "  help: " << text.help << "\n").print();
}

/// Prints the fault and aborts. To debug a fault, set a breakpoint here.
[[noreturn]] MALLARD_COLD inline void stop_at_fault(const fault& f) noexcept
{
    print_fault(f);
    std::abort();
}

/// A function that is called for each fault. It is a plain function, or a reference to a callable
/// that outlives the allocator.
///
///     auto collect = [&](const mallard::fault& f) { kinds.push_back(f.kind); };
///     mallard::checked<mallard::multipool<>> orders({"orders", collect});
///
/// The handler runs inside the call that found the fault, and with the option `shared` under the
/// lock of the allocator. The handler must not throw, and must not call that allocator.
class fault_handler {
public:
    constexpr fault_handler() noexcept
        : call_([](const fault& f, void*) noexcept { stop_at_fault(f); })
    {
    }
    /// Makes a handler that calls `call(fault, context)`.
    constexpr fault_handler(void (*call)(const fault&, void* context) noexcept,
                            void* context = nullptr) noexcept
        : call_(call), context_(context)
    {
    }
    /// Makes a handler that calls `f(fault)`. `f` must outlive the handler.
    template <std::invocable<const fault&> F>
        requires(!std::same_as<std::remove_cv_t<F>, fault_handler>)
    constexpr fault_handler(F& f) noexcept
        : call_([](const fault& found, void* context) noexcept {
              (*static_cast<F*>(context))(found);
          }),
          context_(const_cast<void*>(static_cast<const void*>(&f)))
    {
    }

    /// Calls the function with a fault.
    void operator()(const fault& f) const noexcept { call_(f, context_); }

private:
    void (*call_)(const fault&, void*) noexcept;
    void* context_ = nullptr;
};

/// The default fault handler, which prints a message and aborts.
inline constexpr fault_handler stop_at_faults{};

/// A fault handler that prints a message and lets the program continue.
///
///     mallard::checked<mallard::multipool<>> orders({"orders", mallard::print_faults});
inline constexpr fault_handler print_faults{[](const fault& f, void*) noexcept { print_fault(f); }};

/// The name of an allocator in messages, and its fault handler. The text of the name must outlive
/// the allocator.
///
///     mallard::checked<> orders({"orders", mallard::print_faults});
struct fault_reporter {
    const char* name = "an allocator without a name"; ///< for messages; must outlive the allocator
    fault_handler on_fault{}; ///< called for each fault; by default stops the process

    constexpr fault_reporter() noexcept = default;
    /// Makes a reporter for the allocator with this name.
    constexpr fault_reporter(const char* allocator, fault_handler handler = {}) noexcept
        : name(allocator), on_fault(handler)
    {
    }
};

} // namespace mallard
