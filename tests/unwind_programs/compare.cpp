// A library to preload. On each malloc and free, the library compares the stack that the walk of
// src/os/unwind.hpp finds with the stack that libunwind finds. The walk remembers the last stack of
// each thread. When the program exits, the library appends a line of numbers to the file that
// UNWIND_COUNTS names: see programs.py.
//
// The variable UNWIND_ONLY chooses one way to find stacks, to measure its time: `walk` remembers
// the last stack, `whole` does not, and `libunwind` uses libunwind. With UNWIND_SHOW, the library
// prints the first five pairs of stacks that differ.
#include "../../src/os/unwind.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>
#include <fcntl.h>
#include <libunwind.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

using namespace mallard::os;

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void __libc_free(void*);
}

namespace {

constexpr std::size_t frames_max = 8192;

struct counts {
    std::atomic<unsigned long> events, frames, fresh, wrong, shorter, longer, gaps;
    std::atomic<unsigned long> walk_ticks, reference_ticks;
};

constinit counts counted{};
constinit std::atomic<bool> is_on{false};
constinit bool walks = true;      // find stacks by src/os/unwind.hpp
constinit bool remembers = true;  // remember the last stack of each thread
constinit bool references = true; // find stacks by libunwind
constinit thread_local stack_memory memory;
constinit thread_local void** reference = nullptr;
constinit thread_local bool is_busy = false;

void* take(std::size_t bytes)
{
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/// Prints both stacks, innermost first.
void show(void* const* other, int depth)
{
    static std::atomic<int> shown{0};
    if (std::getenv("UNWIND_SHOW") == nullptr || shown.fetch_add(1) >= 5)
        return;
    std::fprintf(stderr, "walk (%u)%s\n", memory.depth, memory.cut ? ", cut" : "");
    for (int i = 0; i < std::max(depth, static_cast<int>(memory.depth)); ++i) {
        Dl_info info{};
        void* const ours = i < static_cast<int>(memory.depth)
                               ? reinterpret_cast<void*>(memory.frames[memory.depth - 1 - i].pc)
                               : nullptr;
        void* const theirs = i < depth ? other[i] : nullptr;
        ::dladdr(ours != nullptr ? ours : theirs, &info);
        std::fprintf(stderr, "  %c %18p %18p %s %s\n", ours == theirs ? ' ' : '!', ours, theirs,
                     info.dli_fname, info.dli_sname);
    }
}

/// Compares the stack in `memory` with the one that libunwind finds.
void compare(void* const* other, int depth, std::uintptr_t pc)
{
    while (depth > 0 && reinterpret_cast<std::uintptr_t>(*other) != pc) {
        other += 1;
        depth -= 1;
    }
    auto const count = static_cast<int>(memory.depth);
    int same = 0;
    while (same < std::min(depth, count) &&
           reinterpret_cast<std::uintptr_t>(other[same]) == memory.frames[count - 1 - same].pc)
        same += 1;
    if (same == depth && same == count)
        return;
    if (same == 0 || same < std::min(depth, count))
        counted.wrong += 1;
    else if (count < depth)
        counted.shorter += 1;
    else
        counted.longer += 1;
    show(other, depth);
}

/// Adds the time since `start`. Ignores long times, because another program probably ran meanwhile.
void add_ticks(std::atomic<unsigned long>& sum, unsigned long start)
{
    constexpr unsigned long longest = 20'000;
    unsigned long const ticks = __rdtsc() - start;
    if (ticks < longest)
        sum += ticks;
}

void find_stacks(call_site from)
{
    if (memory.frames.empty()) {
        memory.frames = {static_cast<stack_frame*>(take(frames_max * sizeof(stack_frame))),
                         frames_max};
        reference = static_cast<void**>(take(frames_max * sizeof(void*)));
    }
    counted.events += 1;
    std::uint64_t const start = __rdtsc();
    if (walks) {
        if (!remembers)
            memory.forget();
        stack_change const change = walk(memory, from);
        add_ticks(counted.walk_ticks, start);
        counted.frames += memory.depth;
        counted.fresh += change.fresh;
        counted.gaps += change.gap ? 1 : 0;
    }
    std::uint64_t const middle = __rdtsc();
    if (references) {
        int const depth = unw_backtrace(reference, frames_max);
        add_ticks(counted.reference_ticks, middle);
        if (walks)
            compare(reference, depth, from.pc);
    }
}

[[gnu::always_inline]] inline void event()
{
    if (!is_on.load(std::memory_order_relaxed) || is_busy)
        return;
    int const kept_errno = errno;
    is_busy = true;
    find_stacks(caller());
    is_busy = false;
    errno = kept_errno;
}

[[gnu::constructor]] void start()
{
    if (char const* const only = std::getenv("UNWIND_ONLY")) {
        walks = *only != 'l';
        remembers = *only != 'w' || only[1] != 'h';
        references = !walks;
    }
    unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD);
    unw_set_cache_size(unw_local_addr_space, 1024, 0);
    ::unsetenv("LD_PRELOAD");
    is_on = true;
}

[[gnu::destructor]] void finish()
{
    char const* const path = std::getenv("UNWIND_COUNTS");
    if (!is_on.exchange(false) || path == nullptr)
        return;
    int const file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    ::dprintf(file, "%lu %lu %lu %lu %lu %lu %lu %lu %lu\n", counted.events.load(),
              counted.frames.load(), counted.fresh.load(), counted.wrong.load(),
              counted.shorter.load(), counted.longer.load(), counted.gaps.load(),
              counted.walk_ticks.load(), counted.reference_ticks.load());
    ::close(file);
}

} // namespace

extern "C" {

void* malloc(std::size_t bytes)
{
    void* const block = __libc_malloc(bytes);
    event();
    return block;
}

void* calloc(std::size_t count, std::size_t bytes)
{
    void* const block = __libc_calloc(count, bytes);
    event();
    return block;
}

void* realloc(void* block, std::size_t bytes)
{
    void* const moved = __libc_realloc(block, bytes);
    event();
    return moved;
}

void free(void* block)
{
    event();
    __libc_free(block);
}

void _exit(int status)
{
    finish();
    for (;;)
        ::syscall(SYS_exit_group, status);
}
}
