// Walks call stacks. All threads share a cache with the unwind rules of return addresses. Each walk
// compares the stack with the last stack of the thread.
#include "processor.hpp"
#include "unwind.hpp"
#include "unwind_rule.hpp"

#include <mallard/detail/base/annotate.hpp>

#include <algorithm>
#include <array>
#include <atomic>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

// Two symbols of glibc. One is the end of the main thread's stack, the other a lock-free function
// that finds the module of an address (in glibc 2.35 and later). Other C libraries have neither
// symbol.
#if defined(__GLIBC__)
extern "C" [[gnu::weak]] void* __libc_stack_end; // NOLINT(bugprone-reserved-identifier)
#endif
#ifdef DLFO_EH_SEGMENT_TYPE
extern "C" [[gnu::weak]] int _dl_find_object(void*, dl_find_object*) noexcept;
#endif

namespace mallard::os {
namespace {

constexpr std::uintptr_t page_bytes = 4096;

/// Linux maps nothing else within this distance below the end of the main thread's stack, unless a
/// program requests an address there.
constexpr std::uintptr_t main_stack_bytes = std::uintptr_t{128} << 20;

// --- memory that may be read

/// Calls rt_sigprocmask with the invalid operation -1 and the set of signals at `address`. Returns
/// the kernel's result and does not change errno.
long change_signals_to(std::uintptr_t address) noexcept
{
#if defined(__x86_64__)
    long result = SYS_rt_sigprocmask;
    asm volatile("mov $8, %%r10d\n\tsyscall"
                 : "+a"(result)
                 : "D"(-1L), "S"(address), "d"(0L)
                 : "rcx", "r10", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long number asm("x8") = SYS_rt_sigprocmask;
    register long result asm("x0") = -1;
    register std::uintptr_t set asm("x1") = address;
    register long old asm("x2") = 0;
    register long bytes asm("x3") = 8;
    asm volatile("svc #0" : "+r"(result) : "r"(number), "r"(set), "r"(old), "r"(bytes) : "memory");
    return result;
#else
#error "Mallard supports x86-64 and AArch64 only"
#endif
}

/// Returns whether the page at `address` can be read. Passes the address to the kernel as a signal
/// set, with the invalid operation -1. The kernel reads the set first, and returns EFAULT if the
/// set cannot be read. Sandboxes allow this system call.
bool is_readable(std::uintptr_t address) noexcept
{
    // Valgrind would report bytes that the program has not written yet.
    if (int const known = valgrind::is_addressable(reinterpret_cast<void const*>(address)))
        return known == 1;
    return change_signals_to(address) != -EFAULT;
}

/// Returns the end of the main thread's stack, or 0 if the end is unknown.
std::uintptr_t main_stack_end() noexcept
{
#if defined(__GLIBC__)
    return &__libc_stack_end == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(__libc_stack_end);
#else
    return 0;
#endif
}

bool is_on_main_stack(std::uintptr_t sp) noexcept
{
    return main_stack_end() - sp < main_stack_bytes;
}

/// Returns whether `sp` is in the stack of the thread that owns `memory`. In glibc, the thread
/// pointer is at the upper end of the stack that is mapped for a thread. When the stack first
/// extends further down, this function tests the pages below one by one. The first page that cannot
/// be read is the guard page at the lower end.
bool is_on_own_stack(stack_memory& memory, std::uintptr_t sp) noexcept
{
    if (!memory.bounds_are_known) {
        memory.bounds_are_known = true;
        bool const is_main = ::syscall(SYS_gettid) == ::getpid();
        memory.high = is_main ? 0 : thread_pointer();
        memory.low = memory.high & ~(page_bytes - 1);
        memory.low_is_final = is_main;
    }
    if (sp >= memory.high)
        return false;
    for (int tries = 2048; sp < memory.low && !memory.low_is_final && tries > 0; --tries) {
        if (is_readable(memory.low - page_bytes))
            memory.low -= page_bytes;
        else
            memory.low_is_final = true;
    }
    return sp >= memory.low;
}

// --- rules

// A word of the cache contains a rule, and the upper bits of the return address to which it
// belongs.
constexpr unsigned index_bits = address_bits + unwind_rule::bits - 64;
constinit std::array<std::atomic<std::uint64_t>, 1 << index_bits> cached_rules{};
constinit std::array<std::atomic<std::uintptr_t>, 256> known_modules{};
constinit std::atomic<void (*)(code_module const&) noexcept> new_module_hook{nullptr};

constexpr std::size_t index_of(std::uintptr_t pc) noexcept
{
    return (pc ^ pc >> index_bits) & (cached_rules.size() - 1);
}

/// A module, and the memory ranges of the module that can be read.
struct found_module {
    code_module module{};
    std::byte const* header = nullptr; // .eh_frame_hdr
    std::uintptr_t base = 0;           // added to the addresses in `segments`
    std::span<const ElfW(Phdr)> segments;

    /// Sets the address range and the header from the program headers.
    void read_segments() noexcept
    {
        module.begin = UINTPTR_MAX;
        module.end = 0;
        for (auto const& h : segments) {
            std::uintptr_t const begin = base + h.p_vaddr;
            if (h.p_type == PT_GNU_EH_FRAME)
                header = reinterpret_cast<std::byte const*>(begin);
            if (h.p_type != PT_LOAD)
                continue;
            module.begin = std::min(module.begin, begin);
            module.end = std::max(module.end, begin + h.p_memsz);
        }
    }

    /// Returns the segment that contains `address`, because there may be a gap between two segments
    /// where nothing is mapped. Without program headers, returns the whole module.
    std::span<const std::byte> readable_around(std::uintptr_t address) const noexcept
    {
        if (segments.empty())
            return {reinterpret_cast<std::byte const*>(module.begin), module.end - module.begin};
        for (auto const& h : segments)
            if (h.p_type == PT_LOAD && (h.p_flags & PF_R) != 0 &&
                address - (base + h.p_vaddr) < h.p_memsz)
                return {reinterpret_cast<std::byte const*>(base + h.p_vaddr), h.p_memsz};
        return {};
    }

    /// Returns whether the module is the dynamic linker, which the kernel runs first when it starts
    /// a program.
    bool is_dynamic_linker() const noexcept
    {
        std::uintptr_t const start = ::getauxval(AT_BASE); // 0 in a static program
        return start != 0 && module.begin <= start && start < module.end;
    }

    /// Reads the rule for the code at `code`. Tools like BOLT put the search table and the FDE into
    /// different segments. In glibc's dynamic linker, only the entry point has no FDE. The entry
    /// point calls the constructors of libraries (`_dl_start_user` up to glibc 2.36), so it is the
    /// outermost frame.
    unwind_rule rule_of(std::uintptr_t code) const noexcept
    {
        auto const at = reinterpret_cast<std::uintptr_t>(header);
        std::uintptr_t const entry = find_entry(readable_around(at), at, code).fde;
        unwind_rule const rule = read_rule(readable_around(entry), entry, code);
        if (rule.kind() != unwind_rule::no_function)
            return rule;
        return unwind_rule(is_dynamic_linker() ? unwind_rule::outermost : unwind_rule::cut);
    }
};

struct query {
    std::uintptr_t code;
    found_module found;
};

/// Finds a module by its program headers. Used with glibc before 2.35 and with other C libraries.
int find_by_headers(dl_phdr_info* info, std::size_t, void* argument) noexcept
{
    query& q = *static_cast<query*>(argument);
    bool has_code = false;
    std::span const segments(info->dlpi_phdr, info->dlpi_phnum);
    for (auto const& h : segments)
        has_code |= h.p_type == PT_LOAD && q.code - (info->dlpi_addr + h.p_vaddr) < h.p_memsz;
    if (!has_code)
        return 0;
    q.found = {{0, 0, info->dlpi_name}, nullptr, info->dlpi_addr, segments};
    q.found.read_segments();
    return 1;
}

found_module find_module(std::uintptr_t code) noexcept
{
#ifdef DLFO_EH_SEGMENT_TYPE
    dl_find_object object;
    if (&_dl_find_object != nullptr) {
        if (::_dl_find_object(reinterpret_cast<void*>(code), &object) != 0)
            return {};
        found_module found{{reinterpret_cast<std::uintptr_t>(object.dlfo_map_start),
                            reinterpret_cast<std::uintptr_t>(object.dlfo_map_end),
                            object.dlfo_link_map->l_name},
                           static_cast<std::byte const*>(object.dlfo_eh_frame),
                           object.dlfo_link_map->l_addr,
                           {}};
        // The kernel maps the program without the gaps between segments, so for the program, the
        // range above is only the segment with the code. The dynamic linker maps each library as
        // one range that includes the gaps.
        if (*found.module.path == '\0') {
            found.segments = {reinterpret_cast<const ElfW(Phdr)*>(::getauxval(AT_PHDR)),
                              ::getauxval(AT_PHNUM)};
            found.read_segments();
        }
        return found;
    }
#endif
    query q{code, {}};
    ::dl_iterate_phdr(find_by_headers, &q);
    return q.found;
}

/// Finds the rule for a return address that is not in the cache.
[[gnu::noinline]] unwind_rule find_rule_of(std::uintptr_t pc) noexcept
{
    found_module const found = find_module(pc - 1);
    if (found.header == nullptr)
        return {}; // not cached, because a module may be loaded here later
    unwind_rule const rule =
        has_frame_records ? unwind_rule(unwind_rule::framed) : found.rule_of(pc - 1);
    if (pc >> address_bits == 0)
        cached_rules[index_of(pc)].store(pc >> index_bits << unwind_rule::bits | rule.word(),
                                         std::memory_order_relaxed);

    auto& known = known_modules[(found.module.begin >> 12) % known_modules.size()];
    auto* const hook = new_module_hook.load(std::memory_order_acquire);
    if (known.exchange(found.module.begin, std::memory_order_relaxed) != found.module.begin &&
        hook != nullptr)
        hook(found.module);
    return rule;
}

unwind_rule rule_of(std::uintptr_t pc) noexcept
{
    std::uint64_t const word = cached_rules[index_of(pc)].load(std::memory_order_relaxed);
    if (word >> unwind_rule::bits == pc >> index_bits) [[likely]]
        return unwind_rule(word);
    return find_rule_of(pc);
}

// --- steps

/// A frame, and the range of memory that may be read to step to the frame's caller. Functions that
/// are not inlined receive a copy of the cursor, so that the walk can keep the cursor itself in
/// registers.
struct cursor {
    enum results : std::uint8_t { moved, moved_over_signal, ended, lost };

    stack_memory* memory; // null if the thread's own stack is not known
    call_site at;
    std::uintptr_t slot = at.sp - 8; // where at.pc was read
    std::uintptr_t high = 0;         // the stack can be read from at.sp up to this address
    bool is_comparable = false;      // true on the thread's own stack: `slot` can be compared later
    bool may_grow = false;           // whether more may be readable above `high`

    void enter_stack() noexcept
    {
        is_comparable = true;
        may_grow = false;
        if (is_on_main_stack(at.sp)) {
            high = main_stack_end();
        } else if (memory != nullptr && is_on_own_stack(*memory, at.sp)) {
            high = memory->high;
        } else { // the stack of a fiber, or an alternate stack for signals
            is_comparable = false;
            may_grow = true;
            high = (at.sp + page_bytes - 1) & ~(page_bytes - 1);
        }
    }

    bool can_read(std::uintptr_t address) noexcept
    {
        if (address >= at.sp && address < high && high - address >= 8) [[likely]]
            return true;
        if (!may_grow || address < at.sp)
            return false;
        high = grown(high, address + 8);
        return address + 8 <= high;
    }

    /// Returns `high` after moving it up by pages, until it reaches `to` or the first page that
    /// cannot be read.
    [[gnu::noinline]] static std::uintptr_t grown(std::uintptr_t high, std::uintptr_t to) noexcept
    {
        for (int tries = 256; to > high && tries > 0 && is_readable(high); --tries)
            high += page_bytes;
        return high;
    }

    /// Moves the cursor to the caller. `cfa` is the CFA of the current frame.
    [[gnu::always_inline]] results move(std::uintptr_t cfa) noexcept
    {
        slot = cfa - 8;
        if (cfa % 8 != 0 || !can_read(slot))
            return lost;
        at.pc = without_signature(word_at(slot));
        at.sp = cfa;
        return at.pc != 0 ? moved : ended;
    }

    [[gnu::always_inline]] results step() noexcept
    {
        unwind_rule const rule = rule_of(at.pc);
        std::uintptr_t cfa = 0;
        if (rule.kind() == unwind_rule::by_sp)
            cfa = at.sp + static_cast<std::uintptr_t>(rule.cfa());
        else if (rule.kind() == unwind_rule::by_bp)
            cfa = at.bp + static_cast<std::uintptr_t>(rule.cfa());
        else
            return step_copy_by_rare_rule(rule);
        if (std::uintptr_t const saved = cfa - rule.saved_bp(); saved != cfa) {
            if (saved % 8 != 0 || !can_read(saved))
                return lost;
            at.bp = word_at(saved);
        }
        return move(cfa);
    }

    results step_copy_by_rare_rule(unwind_rule rule) noexcept
    {
        cursor copy = *this;
        results const result = copy.step_by_rare_rule(rule);
        *this = copy;
        return result;
    }

    [[gnu::noinline]] results step_by_rare_rule(unwind_rule rule) noexcept
    {
        std::uintptr_t const cfa_slot = at.bp + static_cast<std::uintptr_t>(rule.cfa());
        switch (rule.kind()) {
        case unwind_rule::outermost:
            return ended;
        case unwind_rule::signal:
            return step_over_signal();
        case unwind_rule::framed:
            return step_by_frame_pointer();
        case unwind_rule::realigned: {
            if (at.bp % 8 != 0 || !can_read(cfa_slot) || !can_read(at.bp))
                return lost;
            std::uintptr_t const cfa = word_at(cfa_slot);
            at.bp = word_at(at.bp);
            return move(cfa);
        }
        default:
            return lost;
        }
    }

    /// Moves the cursor from a signal handler to the code that the signal interrupted. A handler
    /// returns to code that restores the registers from a ucontext_t at the stack pointer, so this
    /// function reads the registers there.
    results step_over_signal() noexcept
    {
#if defined(__x86_64__)
        auto const place_of = [&](std::uintptr_t reg) {
            return at.sp + offsetof(ucontext_t, uc_mcontext.gregs) + 8 * reg;
        };
        static_assert(int{REG_RBP} < int{REG_RSP} && int{REG_RSP} < int{REG_RIP});
        if (at.sp % 8 != 0 || !can_read(place_of(REG_RBP)) || !can_read(place_of(REG_RIP)))
            return lost;
        at = {word_at(place_of(REG_RIP)) + 1, word_at(place_of(REG_RSP)),
              word_at(place_of(REG_RBP))};
        slot = 0;
        enter_stack();
        return moved_over_signal;
#else
        return lost; // not called on AArch64, where the kernel adds a frame record
#endif
    }

    results step_by_frame_pointer() noexcept
    {
        if (at.bp == 0)
            return ended;
        if (at.bp % 8 != 0 || !can_read(at.bp))
            return lost;
        std::uintptr_t const cfa = at.bp + 16;
        at.bp = word_at(at.bp);
        return move(cfa);
    }
};

/// Returns the number of outermost frames that may be unchanged. These are the callers of the
/// innermost frame whose return address is no longer in its slot on the stack, or all frames if no
/// slot has changed.
std::uint32_t count_unchanged(std::span<const stack_frame> frames) noexcept
{
    for (std::size_t i = frames.size(); i > 0; --i)
        if (without_signature(word_at(frames[i - 1].slot)) != frames[i - 1].pc)
            return static_cast<std::uint32_t>(i - 1);
    return static_cast<std::uint32_t>(frames.size());
}

/// A walk that compares the stack with the last stack of the thread. The walk collects new frames,
/// innermost first, from the end of memory.frames downwards, so that the outermost new frame has
/// the lowest index.
struct remembering_walk {
    stack_memory& memory;
    cursor at;
    std::uint32_t const room = static_cast<std::uint32_t>(memory.frames.size());
    std::uint32_t const fresh_room = std::min(fresh_frames_max, room / 2);
    std::uint32_t kept = memory.depth; // frames[0, kept) may be callers of the current frame
    std::uint32_t fresh = 0;           // number of frames that were collected

    /// Returns whether the current frame and all outer frames are the same as in the last stack. A
    /// frame of the last stack that differs is excluded from later calls, so a walk compares each
    /// old frame only once.
    [[gnu::always_inline]] bool is_met() noexcept
    {
        while (kept > 0 && memory.frames[kept - 1].slot < at.slot)
            kept -= 1;
        if (kept == 0 || memory.frames[kept - 1].slot != at.slot ||
            memory.frames[kept - 1].pc != at.at.pc)
            return false;
        std::uint32_t const unchanged = count_unchanged(memory.frames.first(kept - 1));
        if (unchanged == kept - 1)
            return true;
        kept = unchanged;
        return false;
    }

    [[gnu::always_inline]] void collect() noexcept
    {
        if (fresh < fresh_room) {
            if (fresh + kept == room) [[unlikely]]
                kept = std::min(kept, room / 2); // drop many old frames, so this happens rarely
            memory.frames[room - 1 - fresh] = {at.is_comparable ? at.slot : 0, at.at.pc};
        }
        fresh += 1;
    }

    /// Marks the frames of a signal handler as never to be compared, because the next signal may
    /// interrupt another frame.
    [[gnu::noinline]] static void exclude(std::span<stack_frame> frames) noexcept
    {
        for (auto& frame : frames)
            frame.slot = 0;
    }

    stack_change finish(bool is_cut) noexcept
    {
        std::uint32_t const stored = std::min(fresh, fresh_room);
        // Copy the frames one by one, because memmove would defeat store forwarding. A load of
        // several frames together would wait until the stores of `collect` have reached the cache.
        auto const from = memory.frames.last(stored);
        auto const to = memory.frames.subspan(kept, stored);
#pragma GCC unroll 1
        for (std::size_t i = 0; i < stored; ++i)
            to[i] = from[i];
        memory.depth = kept + stored;
        memory.cut = is_cut;
        return {kept, stored, std::uint32_t{is_cut}, std::uint32_t{stored < fresh}};
    }

    stack_change run(stack_mode mode) noexcept
    {
        at.enter_stack();
        // A stack that is not the thread's own is never compared, so each event walks the whole
        // stack.
        std::uint32_t const limit = at.is_comparable ? room : fresh_room;
        while (!(at.is_comparable && is_met())) {
            if (fresh == limit) {
                kept = 0;
                stack_change const change = finish(false);
                return {0, change.fresh, 0, 1};
            }
            collect();
            auto const result =
                mode == stack_mode::unwound ? at.step() : at.step_by_frame_pointer();
            if (result == cursor::moved) [[likely]]
                continue;
            if (result != cursor::moved_over_signal) {
                kept = 0;
                return finish(result == cursor::lost);
            }
            exclude(memory.frames.last(std::min(fresh, fresh_room)));
        }
        return finish(memory.cut);
    }
};

stack_change keep_caller(stack_memory& memory, std::uintptr_t pc) noexcept
{
    bool const is_same = memory.depth == 1 && memory.frames[0].pc == pc;
    memory.frames[0] = {0, pc};
    memory.depth = 1;
    return {is_same ? 1u : 0u, is_same ? 0u : 1u, 0, 0};
}

} // namespace

stack_change walk(stack_memory& memory, call_site from, stack_mode mode) noexcept
{
    if (mode == stack_mode::caller)
        return keep_caller(memory, from.pc);
    return remembering_walk{memory, cursor{&memory, from}}.run(mode);
}

std::size_t walk(std::span<void*> into, call_site from) noexcept
{
    cursor c{.memory = nullptr, .at = from};
    c.enter_stack();
    std::size_t count = 0;
    while (count < into.size() && c.step() <= cursor::moved_over_signal) {
        into[count] = reinterpret_cast<void*>(c.at.pc);
        count += 1;
    }
    return count;
}

void forget_code() noexcept
{
    for (auto& module : known_modules)
        module.store(0, std::memory_order_relaxed);
    for (auto& rule : cached_rules)
        rule.store(0, std::memory_order_relaxed);
}

code_module module_of(std::uintptr_t pc) noexcept
{
    return find_module(pc - 1).module;
}

std::uintptr_t function_begin(std::uintptr_t pc) noexcept
{
    found_module const found = find_module(pc - 1);
    auto const at = reinterpret_cast<std::uintptr_t>(found.header);
    return at == 0 ? 0 : find_entry(found.readable_around(at), at, pc - 1).begin;
}

void on_new_module(void (*hook)(code_module const&) noexcept) noexcept
{
    new_module_hook.store(hook, std::memory_order_release);
}

} // namespace mallard::os
