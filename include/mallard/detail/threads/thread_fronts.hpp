// A part of a shared allocator for each thread, and how a thread finds its own.
// What knows of threads being born and dying is in src/os: `sync::thread_cached`
// and `shared_arena` need the library, all other modes are headers.
#pragma once

#include <mallard/detail/base/bits.hpp>

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

namespace mallard {

class front_home;

namespace os {
struct registry;
struct thread_table;

/// A node of a list that it can leave by itself.
template <class Node>
struct listed {
    Node* next_listed = nullptr;
    Node** listed_at = nullptr; // what points here; null: in no list
};
} // namespace os

/// What one thread has of one allocator: derived from by what the allocator keeps
/// for it. A front whose thread is gone is idle, and waits for another thread.
///
/// Its content is for
///   - its thread, between `enter`, when that says true, and `leave`;
///   - its thread, while it holds the lock of the home;
///   - any thread that holds that lock, if the front is idle or the home frozen.
///
/// There is no fence between `enter`'s write and its read: `front_home::freeze`
/// brings the one that is needed to all threads, from its side. (The asymmetric
/// fence is in Dice, Huang, Yang, "Asymmetric Dekker synchronization", 2001.)
class thread_front {
public:
    thread_front() noexcept = default;
    thread_front(const thread_front&) = delete;
    thread_front& operator=(const thread_front&) = delete;

    /// False: someone else is at it. Then, too, `leave`.
    [[gnu::always_inline]] bool enter() noexcept
    {
        announce();
        return frozen_.load(std::memory_order_acquire) == 0;
    }
    /// To enter by a gate of the front's own, which `set_open` has shut when it is frozen.
    [[gnu::always_inline]] void announce() noexcept
    {
        busy_.store(1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    [[gnu::always_inline]] void leave() noexcept { busy_.store(0, std::memory_order_release); }

    thread_front* next_of_home() const noexcept { return next_of_home_; }
    bool is_idle() const noexcept { return thread_ == nullptr; }

    /// For a front that is only entered by `enter`.
    void set_open(bool) noexcept {}

private:
    friend class front_home;
    friend struct os::registry;

    using flag = std::uint32_t;

    thread_front* next_of_home_ = nullptr;
    front_home* home_ = nullptr;
    // Both locks are held by who writes these, one of them by who reads.
    os::thread_table* thread_ = nullptr;
    thread_front* next_of_thread_ = nullptr;
    // Last, so that what a call writes to a derived front begins on the same line:
    // processors put together neighbouring stores of whole words (docs/decisions/0014).
    alignas(cache_line_bytes) std::atomic<flag> busy_{0};
    std::atomic<flag> frozen_{0};
};

namespace os {

/// The fronts of one thread: in places, where those of up to 64 homes are found at
/// once, and all in a list.
struct alignas(cache_line_bytes) thread_table : listed<thread_table> {
    static constexpr std::size_t places = 64;

    constexpr thread_table() noexcept = default;

    std::array<std::atomic<const front_home*>, places> homes{};
    std::array<thread_front*, places> fronts_of{}; // none is null where there is a home
    thread_front* fronts = nullptr;                // under the registry's lock
};

/// Of a thread without fronts: nothing is found in it, and nobody writes to it.
extern thread_table no_fronts;

/// This thread's. Eight bytes of the little room that a program has for such data.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local thread_table* this_thread_table;

} // namespace os

/// The shared side: what an allocator with a front for each thread derives from.
///
/// Locks: that of the registry of threads, inside the functions below, comes
/// before `lock`, which is for all that threads share; nothing outside is called
/// with that held. `growing` comes before both, and is held whenever the source is
/// called: so when a fork has all of them, no thread is inside the source either.
class front_home : os::listed<front_home> { // of those with a front in use
public:
    using gate = void (*)(thread_front&, bool open) noexcept;

    constexpr explicit front_home(gate set_open) noexcept : set_open_(set_open) {}
    front_home(const front_home&) = delete;
    front_home& operator=(const front_home&) = delete;

    /// This thread's front, or null.
    [[gnu::always_inline]] thread_front* here() const noexcept
    {
        std::size_t const at = place_.load(std::memory_order_relaxed);
        os::thread_table const& t = *os::this_thread_table;
        if (t.homes[at].load(std::memory_order_relaxed) != this) [[unlikely]]
            return nullptr;
        if (t.fronts_of[at] == nullptr)
            __builtin_unreachable();
        return t.fronts_of[at];
    }

    /// The same where `here` found none: another home has taken its place, or an
    /// idle one becomes this thread's. Null when there is none, or no memory for the
    /// table of a new thread.
    thread_front* find_or_adopt() noexcept;

    /// Makes a new front this thread's; false when there is no memory for its table.
    bool join(thread_front& fresh) noexcept;

    /// Adds a front that is idle, before any other thread knows of this home.
    constexpr void add_idle(thread_front& f) noexcept
    {
        f.home_ = this;
        f.next_of_home_ = std::exchange(fronts_, &f);
    }

    /// No front is any thread's any more. No thread is inside a call, but threads
    /// may die meanwhile.
    void part() noexcept;

    /// With `lock` held: until `thaw`, the content of every front is the caller's.
    void freeze() const noexcept;
    void thaw() const noexcept;

    /// With `lock` held. Takes an idle front out of the list.
    void remove_idle(thread_front& f) noexcept;

    /// Those that are no thread's; the caller has them.
    void forget_fronts() noexcept { fronts_ = nullptr; }

    thread_front* fronts() const noexcept { return fronts_; }

    /// Makes sure that forks know of this home, as with the first front in use.
    void enlist() noexcept;

    /// Locks of the allocator beside those of its home, which a fork holds too, so
    /// that a child finds none of them taken; each null, or as long as this.
    constexpr void hold_at_fork(std::mutex* one, std::mutex* other) noexcept
    {
        held_at_fork_ = {one, other};
    }

    mutable std::recursive_mutex growing; // a new-handler may trim the pool that grows
    mutable std::mutex lock;

protected:
    ~front_home() = default;

private:
    friend struct os::registry;

    gate set_open_; // of the fronts that it has
    std::array<std::mutex*, 2> held_at_fork_{};
    std::atomic<bool> enlisted_ = false;
    thread_front* fronts_ = nullptr;       // all; under `lock`
    std::atomic<std::uint32_t> place_ = 0; // in every table; given with the first front in use
};

/// While one lives, the content of every front of a home is the caller's, who
/// holds its lock.
class frozen {
public:
    explicit frozen(const front_home& home) noexcept : home_(home) { home_.freeze(); }
    ~frozen() { home_.thaw(); }
    frozen(const frozen&) = delete;
    frozen& operator=(const frozen&) = delete;

private:
    const front_home& home_;
};

} // namespace mallard
