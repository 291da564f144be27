// Helpers for the programs in this directory. Each program misuses malloc, then checks the
// consequences and prints them: `nothing`, or the damage.
//
// Each program runs with two libraries. Its first two lines have the expected outcomes. The first
// line (`dies:`, `lives:` or `segfaults:`) is for the ordinary malloc, libmallard-malloc.so. The
// second line (`checked dies:` and so on) is for libmallard-checked.so, a malloc that also has
// redzones and a quarantine and so detects more misuse. tests/misuse/run.py explains the notation.
#pragma once

#include "../family.hpp"

#include <cstdio>
#include <cstring>
#include <initializer_list>

#include <pthread.h>

namespace mallard::testing {

constexpr std::size_t bytes_large = 300'000, bytes_huge = std::size_t{64} << 20;

/// Allocates a block, and hides its origin from the optimiser.
inline void* allocate(std::size_t bytes)
{
    return hidden(std::malloc(bytes));
}
inline void set_free(void* block)
{
    std::free(hidden(block));
}
inline void* at(void* block, std::ptrdiff_t offset)
{
    return hidden(static_cast<char*>(block) + offset);
}

/// Allocates a block. Also allocates others, so that the thread's list of this size class has room
/// for the next frees.
inline void* allocate_with_room(std::size_t bytes)
{
    for (int i = 0; i < 4; ++i)
        allocate(bytes);
    return allocate(bytes);
}

inline void set_free_in_another_thread(void* block)
{
    auto const run = [](void* argument) -> void* {
        std::free(argument);
        return nullptr;
    };
    pthread_t thread;
    ::pthread_create(&thread, nullptr, run, block);
    ::pthread_join(thread, nullptr);
}

inline int say(const char* what)
{
    std::puts(what);
    std::fflush(stdout);
    return 0;
}

/// Checks, after a double free, whether malloc returns the same block twice.
inline int look_for_twins(std::size_t bytes)
{
    void* blocks[512];
    for (void*& block : blocks) {
        block = std::malloc(bytes);
        for (void* const* other = blocks; other != &block; ++other)
            if (*other == block)
                return say("a block was given out twice");
    }
    for (void* const block : blocks)
        std::free(block);
    return say("nothing");
}

/// The address that an attacker wants malloc to return.
alignas(64) inline char target[1024];

/// Writes the address of the target into words `first` to `last` of a block.
inline void scribble(void* block, int first, int last)
{
    for (int word = first; word < last; ++word)
        static_cast<void**>(hidden(block))[word] = target + 64;
}

inline int look_for_target(std::size_t bytes)
{
    for (int i = 0; i < 2000; ++i)
        if (std::malloc(bytes) == target + 64)
            return say("malloc returned the address that was written");
    return say("nothing");
}

/// Writes outside of the second of three blocks, and checks the other two blocks.
inline int write_around(std::size_t bytes, std::ptrdiff_t start, std::size_t count,
                        bool from_usable_end = false)
{
    void* blocks[3];
    for (void*& block : blocks)
        block = allocate(bytes);
    std::size_t const usable = ::malloc_usable_size(blocks[1]);
    for (void* const block : blocks)
        std::memset(block, 0, usable);
    start += from_usable_end ? static_cast<std::ptrdiff_t>(usable) : 0;
    std::memset(at(blocks[1], start), 0xa5, count);
    for (void* const block : {blocks[0], blocks[2]})
        if (!is_clear(block, usable))
            return say("a neighbour is damaged");
    for (void* const block : blocks)
        std::free(block);
    return look_for_twins(bytes);
}
inline int write_past_the_usable_size(std::size_t bytes, std::size_t count)
{
    return write_around(bytes, 0, count, true);
}

} // namespace mallard::testing

using namespace mallard::testing;
