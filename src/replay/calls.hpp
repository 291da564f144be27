// The policies of the loop that replays a thread's calls. The policies determine which allocator is
// called, which bytes of new blocks are written, and how long a thread waits between calls.
#pragma once

#include "play.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include <time.h>

namespace mallard::replay {

/// Calls the functions of malloc and the local allocators. The functions of malloc are called by
/// their dynamic symbols, so that a preloaded malloc serves the calls.
class real_calls {
public:
    real_calls(play& of, playing_thread&) noexcept : targets_(of.locals()) {}

    void note(op const&) const noexcept {}

    static void* malloc(std::size_t bytes) noexcept { return std::malloc(bytes); }
    static void* calloc(std::size_t bytes) noexcept { return std::calloc(1, bytes); }
    static void* aligned(std::size_t bytes, std::size_t align) noexcept
    {
        return std::aligned_alloc(align, bytes);
    }
    static void* realloc(void* block, std::size_t bytes) noexcept
    {
        return std::realloc(block, bytes);
    }
    static void* make(std::size_t bytes) noexcept
    {
        return or_null([&] { return ::operator new(bytes); });
    }
    static void* make(std::size_t bytes, std::size_t align) noexcept
    {
        return or_null([&] { return ::operator new(bytes, std::align_val_t{align}); });
    }
    static void free(void* block) noexcept { std::free(block); }
    static void destroy(void* block) noexcept { ::operator delete(block); }
    static void destroy(void* block, std::size_t align) noexcept
    {
        ::operator delete(block, std::align_val_t{align});
    }
    static void free_sized(void* block, std::size_t bytes) noexcept
    {
        ::operator delete(block, bytes);
    }
    static void free_aligned(void* block, std::size_t bytes, std::size_t align) noexcept
    {
        ::operator delete(block, bytes, std::align_val_t{align});
    }

    local_target& target(op const& o) const noexcept
    {
        return targets_[mallard_replay_target_of(o.what)];
    }
    static void open(local_target& at) noexcept { at.open(); }
    static void close(local_target& at) noexcept { at.close(); }
    static void* allocate(local_target& at, layout l) noexcept { return at.allocate(l); }
    static void deallocate(local_target& at, void* block, layout l) noexcept
    {
        at.deallocate(block, l);
    }
    static void copy(void* to, const void* from, std::size_t bytes) noexcept
    {
        std::memcpy(to, from, bytes);
    }

    /// Returns the address of byte `offset` of a block, for a write.
    static std::byte* place(void* block, std::size_t offset) noexcept
    {
        return static_cast<std::byte*>(block) + offset;
    }
    /// Writes to all bytes in the part [from, to) of a block.
    static void fill(void* block, std::size_t from, std::size_t to) noexcept
    {
        std::memset(place(block, from), 1, to - from);
    }

    static constexpr bool can_fail = true;
    void done() const noexcept {}

private:
    /// Calls an operator new, and returns null if it throws. The std::nothrow forms are not used,
    /// because in libstdc++ they need one more call than the recorded form.
    template <class New>
    [[gnu::always_inline]] static void* or_null(New call) noexcept
    {
        try {
            return call();
        } catch (std::bad_alloc const&) {
            return nullptr;
        }
    }

    local_targets& targets_;
};

/// Like `real_calls`, but also adds each call to a hash.
class hashed_calls : public real_calls {
public:
    hashed_calls(play& of, playing_thread& self) noexcept : real_calls(of, self), self_(self) {}

    void note(op const& o) noexcept
    {
        unsigned const kind = mallard_replay_op_of(o.what);
        if (kind == mallard_replay_end || kind > mallard_replay_op_realloc_failed)
            return;
        hash_ = mallard_replay_mix(mallard_replay_mix(hash_, o.what), o.slot);
    }
    void done() const noexcept { self_.hash = hash_; }

private:
    playing_thread& self_;
    std::uint64_t hash_ = 0;
};

/// The allocator for the option `--no-op`. All blocks of a thread are the same page. A replay with
/// this allocator measures only the cost of the replayer itself, with its writes to a page in the
/// processor's cache.
class no_calls {
public:
    no_calls(play& of, playing_thread& self) noexcept
        : targets_(of.locals()), page_(of.page_of(self))
    {
    }

    void note(op const&) const noexcept {}

    void* malloc(std::size_t) const noexcept { return page_; }
    void* calloc(std::size_t) const noexcept { return page_; }
    void* aligned(std::size_t, std::size_t) const noexcept { return page_; }
    void* realloc(void*, std::size_t) const noexcept { return page_; }
    void* make(std::size_t) const noexcept { return page_; }
    void* make(std::size_t, std::size_t) const noexcept { return page_; }
    static void free(void*) noexcept {}
    static void destroy(void*) noexcept {}
    static void destroy(void*, std::size_t) noexcept {}
    static void free_sized(void*, std::size_t) noexcept {}
    static void free_aligned(void*, std::size_t, std::size_t) noexcept {}

    local_target& target(op const& o) const noexcept
    {
        return targets_[mallard_replay_target_of(o.what)];
    }
    static void open(local_target&) noexcept {}
    static void close(local_target&) noexcept {}
    void* allocate(local_target&, layout) const noexcept { return page_; }
    static void deallocate(local_target&, void*, layout) noexcept {}
    static void copy(void*, const void*, std::size_t) noexcept {}

    static std::byte* place(void* block, std::size_t offset) noexcept
    {
        return static_cast<std::byte*>(block) + offset % page_bytes;
    }
    static void fill(void* block, std::size_t from, std::size_t to) noexcept
    {
        for (; to - from > page_bytes; from += page_bytes)
            std::memset(block, 1, page_bytes);
        std::memset(block, 1, to - from);
    }

    static constexpr bool can_fail = false;
    void done() const noexcept {}

private:
    local_targets& targets_;
    std::byte* page_;
};

/// Does not write to new blocks.
struct touch_nothing {
    template <class Calls>
    static void part(void*, std::size_t, std::size_t) noexcept
    {
    }
};

/// Writes a byte to each page in the part [from, to) of a block.
struct touch_pages {
    template <class Calls>
    [[gnu::always_inline]] static void part(void* block, std::size_t from, std::size_t to) noexcept
    {
        if (from >= to)
            return;
        write(Calls::place(block, from));
        auto const first = reinterpret_cast<std::uintptr_t>(block) + from;
        std::size_t const next = from + (page_bytes - first % page_bytes);
        if (next < to) [[unlikely]]
            rest<Calls>(block, next, to);
    }

private:
    static void write(std::byte* at) noexcept
    {
        *const_cast<volatile std::byte*>(at) = std::byte{1};
    }
    template <class Calls>
    [[gnu::noinline]] static void rest(void* block, std::size_t from, std::size_t to) noexcept
    {
        for (; from < to; from += page_bytes)
            write(Calls::place(block, from));
    }
};

/// Writes to all bytes in the part [from, to) of a block.
struct touch_all {
    template <class Calls>
    static void part(void* block, std::size_t from, std::size_t to) noexcept
    {
        if (from < to)
            Calls::fill(block, from, to);
    }
};

/// Never waits between calls.
class no_pace {
public:
    explicit no_pace(double) noexcept {}
    static void before(op const&) noexcept {}
    static void pause(op const&) noexcept {}
};

/// Waits between calls as long as the recorded program did, times a factor. The waiting times are
/// added up until they reach 100 us, because even the shortest sleep takes about 50 us. If a sleep
/// takes longer than requested, the next sleep is shorter by the difference.
class recorded_pace {
public:
    explicit recorded_pace(double factor) noexcept : factor_(factor) {}

    void before(op const& o) noexcept { owe(o.gap); }
    void pause(op const& o) noexcept { owe(mallard_replay_size(o.what)); }

private:
    static constexpr double worth_a_sleep_ns = 100'000;

    void owe(std::uint64_t ns) noexcept
    {
        owed_ns_ += static_cast<double>(ns) * factor_;
        if (owed_ns_ >= worth_a_sleep_ns) [[unlikely]]
            sleep();
    }
    [[gnu::noinline]] void sleep() noexcept
    {
        std::uint64_t const before = now(CLOCK_MONOTONIC);
        constexpr double second = 1e9;
        timespec const wanted{static_cast<time_t>(owed_ns_ / second),
                              static_cast<long>(owed_ns_) % 1'000'000'000};
        ::nanosleep(&wanted, nullptr);
        owed_ns_ -= static_cast<double>(now(CLOCK_MONOTONIC) - before);
    }

    double factor_;
    double owed_ns_ = 0;
};

} // namespace mallard::replay
