// What `checked` and `guarded` find, how it is told, and who hears of it.
//
//     a reporter names the allocator and has a handler; an adaptor makes a fault of what
//     it finds and hands it over; `stop_at_faults`, the default, prints it and aborts.
#pragma once

#include <mallard/detail/base/bits.hpp>
#include <mallard/detail/base/call_stack.hpp>

#include <concepts>
#include <type_traits>

namespace mallard {

enum class fault_kind {
    double_free,      ///< the block was free already
    foreign_free,     ///< no block of this allocator, or one that went back long ago
    interior_free,    ///< an address inside a block
    wrong_layout,     ///< freed with another size or alignment than it was allocated with
    overrun,          ///< somebody wrote behind the block
    underrun,         ///< somebody wrote in front of it
    write_after_free, ///< somebody wrote into a freed block
    touch_outside,    ///< beside a block that is guarded
    touch_after_free, ///< inside one that was
    leak              ///< blocks in use when the allocator ended
};

/// A block that a fault is about, as the books have it.
struct faulty_block {
    const std::byte* data = nullptr;
    std::size_t bytes = 0; ///< as allocated
    std::size_t align = 1;
    std::uint64_t number = 0; ///< counts the allocations of this allocator, from 1
    call_stack allocated{};   ///< empty, unless calls are recorded
    call_stack freed{};
};

/// One fault, as long as the call that tells of it lasts. Copy what is to stay: the calls
/// are in the books, and go with them.
struct fault {
    fault_kind kind;
    const char* allocator; ///< its name
    const void* at;        ///< what was freed, or the first byte that is wrong
    layout said{0, 1};     ///< wrong_layout: what the free said
    std::size_t count = 0; ///< leak: how many blocks, ...
    std::size_t bytes = 0; ///< ... and their bytes
    /// The block; none if foreign; of leaks the first few, in the order they were allocated.
    std::span<const faulty_block> blocks{};
};

namespace faults {

inline void say(const char* text) noexcept
{
    (fatal_message() << text).print();
}

/// The first line is "mallard: BEFORE at AFTER "name"", the last "  help: HELP".
struct text {
    const char* before; // the address; of a leak the bytes
    const char* after;  // and before the name of the allocator
    const char* help;
};

inline constexpr const char* find_the_caller =
    "`break mallard::stop_at_fault` in gdb shows who called deallocate";
inline constexpr const char* record_the_calls =
    "`.frames = 8` in the options, for malloc MALLARD_CALLS=1, records who allocated and freed";
inline constexpr const char* stop_at_the_write =
    "`guarded` instead of `checked`, -fsanitize=address or valgrind stop at the write itself";

inline constexpr const char* find_the_touch =
    "`bt` in gdb, from where the program stands now, shows who";

inline constexpr text texts[] = {
    // by fault_kind
    {"double free of ", " in ", record_the_calls},
    {"free of ", ", which is no block of ", find_the_caller},
    {"free of ", ", which is inside a block of ", find_the_caller},
    {"free of ", " with a wrong layout in ", find_the_caller},
    {"write to ", ", behind a block of ", stop_at_the_write},
    {"write to ", ", in front of a block of ", stop_at_the_write},
    {"write to ", ", which is in a freed block of ", stop_at_the_write},
    {"use of ", ", which is beside a block of ", find_the_touch},
    {"use of ", ", which is in a freed block of ", find_the_touch},
    {"leak of ", " bytes in ", record_the_calls},
};

inline const text& text_of(const fault& f) noexcept
{
    return texts[static_cast<std::size_t>(f.kind)];
}

/// Bytes are counted from the block's first, so one in front of it is negative.
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
        line << " is aligned to " << b.align << "; the free said " << f.said.bytes
             << " bytes aligned to " << f.said.align << "; it is freed";
        break;
    case fault_kind::overrun:
    case fault_kind::underrun:
    case fault_kind::write_after_free:
        line << ": byte " << (offset < 0 ? "-" : "") << distance << " was changed";
        break;
    case fault_kind::touch_outside:
    case fault_kind::touch_after_free:
        line << ": this would be byte " << (offset < 0 ? "-" : "") << distance;
        break;
    case fault_kind::foreign_free: // has no block
    case fault_kind::leak:         // has many
        break;
    }
    (line << "\n").print();
}

inline void print_calls(const faulty_block& b) noexcept
{
    if (b.allocated.print != nullptr)
        b.allocated.print->calls("allocated by ", b.allocated.calls);
    if (b.freed.print != nullptr)
        b.freed.print->calls("freed by ", b.freed.calls);
}

/// The help line for the calls that `print_calls` printed. False: none were recorded.
inline bool print_how_to_read(const faulty_block& b) noexcept
{
    if (b.allocated.print == nullptr)
        return false;
    constexpr std::size_t most = 32; // of allocation and free together
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

/// What happened, what state things are in, what to type next, as in fatal.hpp; and
/// under the second line, indented by four, calls where they are recorded, and the
/// blocks of a leak. To stderr, line by line; allocates nothing.
MALLARD_COLD inline void print_fault(const fault& f) noexcept
{
    const faults::text& text = faults::text_of(f);
    fatal_message title;
    title << "mallard: " << text.before;
    f.kind == fault_kind::leak ? title << f.bytes : title << f.at;
    (title << text.after << "\"" << f.allocator << "\"\n").print();
    if (f.kind == fault_kind::foreign_free)
        faults::say("  it was not given out here, or went back long ago; "
                    "this call changed nothing\n");
    if (f.kind == fault_kind::leak)
        (fatal_message() << "  " << f.count << " blocks are in use, first these:\n").print();
    for (const faulty_block& b : f.blocks) {
        faults::print_state(f, b);
        faults::print_calls(b);
    }
    if (f.blocks.empty() || !faults::print_how_to_read(f.blocks.front()))
        (fatal_message() << "  help: " << text.help << "\n").print();
}

/// Where to put a breakpoint.
[[noreturn]] MALLARD_COLD inline void stop_at_fault(const fault& f) noexcept
{
    print_fault(f);
    std::abort();
}

/// Who hears of faults: a function, or a callable that outlives the allocator.
///
///     auto collect = [&](const mallard::fault& f) { kinds.push_back(f.kind); };
///     mallard::checked<mallard::multipool<>> orders({"orders", collect});
///
/// It is called inside the call that found the fault, in a shared form under the
/// lock: it must not throw, nor call that allocator. `f` lives as long as its call.
class fault_handler {
public:
    constexpr fault_handler() noexcept
        : call_([](const fault& f, void*) noexcept { stop_at_fault(f); })
    {
    }
    constexpr fault_handler(void (*call)(const fault&, void* context) noexcept,
                            void* context = nullptr) noexcept
        : call_(call), context_(context)
    {
    }
    template <std::invocable<const fault&> F>
        requires(!std::same_as<std::remove_cv_t<F>, fault_handler>)
    constexpr fault_handler(F& f) noexcept
        : call_([](const fault& found, void* context) noexcept {
              (*static_cast<F*>(context))(found);
          }),
          context_(const_cast<void*>(static_cast<const void*>(&f)))
    {
    }

    void operator()(const fault& f) const noexcept { call_(f, context_); }

private:
    void (*call_)(const fault&, void*) noexcept;
    void* context_ = nullptr;
};

/// The default: a message, then abort.
inline constexpr fault_handler stop_at_faults{};

/// A message, and the program goes on.
inline constexpr fault_handler print_faults{[](const fault& f, void*) noexcept { print_fault(f); }};

/// The name of an allocator in reports, which must outlive it, and who gets them.
struct fault_reporter {
    const char* name = "an allocator without a name";
    fault_handler on_fault{};

    constexpr fault_reporter() noexcept = default;
    constexpr fault_reporter(const char* allocator, fault_handler handler = {}) noexcept
        : name(allocator), on_fault(handler)
    {
    }
};

} // namespace mallard
