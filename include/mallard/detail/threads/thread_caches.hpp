// The thread caches of one shared allocator: what each thread keeps, and how it is found.
// The functions that learn of threads that end and of forks are in src/os/threads_linux.cpp, so
// `sync::thread_cached` and `shared_arena` need the library; all other modes are headers.
#pragma once

#include <mallard/detail/threads/locks.hpp>

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

namespace mallard {

class thread_cache_list;

namespace os {
struct registry;
struct thread_table;

/// A node of a doubly linked list.
template <class Node>
struct listed {
    Node* next_listed = nullptr;
    Node** listed_at = nullptr; // the pointer to this node; null: in no list
};
} // namespace os

/// What one thread keeps of one shared allocator; each allocator derives its own type. When the
/// thread ends, its cache is abandoned until another thread reclaims it.
///
/// The content of a cache may be used by
///   - its thread, between an `enter` that returns true and `leave`;
///   - its thread, while the thread holds the lock of the list;
///   - any thread that holds that lock, if the cache is abandoned or the list is frozen.
///
/// `enter` writes one word and reads another without a fence in between. The fence is on the rare
/// side: `thread_cache_list::freeze` has every thread execute one (Dice, Huang, Yang, "Asymmetric
/// Dekker synchronization", 2001; docs/decisions/0012).
class thread_cache {
public:
    thread_cache() noexcept = default;
    thread_cache(const thread_cache&) = delete;
    thread_cache& operator=(const thread_cache&) = delete;

    /// False: the list is frozen. Call `leave` in either case.
    [[gnu::always_inline]] bool enter() noexcept
    {
        announce();
        return frozen_.load(std::memory_order_acquire) == 0;
    }
    /// The first half of `enter`, for caches whose content itself tells that it is closed: see
    /// `set_open`.
    [[gnu::always_inline]] void announce() noexcept
    {
        busy_.store(1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    [[gnu::always_inline]] void leave() noexcept { busy_.store(0, std::memory_order_release); }

    thread_cache* next_in_list() const noexcept { return next_in_list_; }
    bool is_abandoned() const noexcept { return thread_ == nullptr; }

    /// Freezing closes a cache and thawing opens it. A derived type that its thread enters by
    /// `announce` alone has its own.
    void set_open(bool) noexcept {}

private:
    friend class thread_cache_list;
    friend struct os::registry;

    using flag = std::uint32_t;

    thread_cache* next_in_list_ = nullptr;
    thread_cache_list* list_ = nullptr;
    // A thread that writes these two holds the registry's lock and the list's; one of them is
    // enough to read.
    os::thread_table* thread_ = nullptr;
    thread_cache* next_of_thread_ = nullptr;
    // Last, so that what a call writes in a derived cache begins on the same cache line: processors
    // combine neighbouring stores of whole words (docs/decisions/0014).
    alignas(cache_line_bytes) std::atomic<flag> busy_{0};
    std::atomic<flag> frozen_{0};
};

namespace os {

/// The caches of one thread. The two arrays find the caches of up to 64 allocators at once; the
/// list holds all caches.
struct alignas(cache_line_bytes) thread_table : listed<thread_table> {
    static constexpr std::size_t places = 64;

    constexpr thread_table() noexcept = default;

    std::array<std::atomic<const thread_cache_list*>, places> lists{};
    std::array<thread_cache*, places> caches_of{}; // not null where `lists` is not null
    thread_cache* caches = nullptr;                // protected by the registry's lock
};

/// The table of a thread without caches. No thread writes to it.
extern thread_table empty_thread_table;

/// This thread's table. Takes 8 of the few bytes that a program has for thread-local data of
/// this model.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local thread_table* this_thread_table;

} // namespace os

/// All thread caches of one shared allocator, and the allocator's locks.
///
/// Locks, in the order in which a thread takes them:
///   growing    held during every call of the source, so a fork that holds it knows that no
///              thread is inside the source
///   (the registry's, inside the functions below)
///   lock       for all data that the threads share; the source is not called under it
class thread_cache_list : os::listed<thread_cache_list> { // of the lists whose caches are in use
public:
    using open_function = void (*)(thread_cache&, bool open) noexcept;

    constexpr explicit thread_cache_list(open_function set_open) noexcept : set_open_(set_open) {}
    thread_cache_list(const thread_cache_list&) = delete;
    thread_cache_list& operator=(const thread_cache_list&) = delete;

    /// This thread's cache, or null: then see `find_or_reclaim`.
    [[gnu::always_inline]] thread_cache* mine() const noexcept
    {
        std::size_t const at = place_.load(std::memory_order_relaxed);
        os::thread_table const& t = *os::this_thread_table;
        if (t.lists[at].load(std::memory_order_relaxed) != this) [[unlikely]]
            return nullptr;
        if (t.caches_of[at] == nullptr)
            __builtin_unreachable();
        return t.caches_of[at];
    }

    /// This thread's cache where `mine` is null: another list may have taken its place in the
    /// table, or an abandoned cache becomes this thread's. Null: there is none, or no memory for
    /// the table of a new thread.
    thread_cache* find_or_reclaim() noexcept;

    /// Makes a new cache this thread's. False: no memory for the thread's table.
    bool attach(thread_cache& fresh) noexcept;

    /// Adds a cache that no thread has, before any other thread knows of the list.
    constexpr void add_abandoned(thread_cache& c) noexcept
    {
        c.list_ = this;
        c.next_in_list_ = std::exchange(caches_, &c);
    }

    /// Takes the caches from their threads. No thread may be inside a call of the allocator, but
    /// threads may end meanwhile.
    void detach_all() noexcept;

    /// With `lock` held: until `thaw`, the caller may use the content of every cache.
    void freeze() const noexcept;
    void thaw() const noexcept;

    /// With `lock` held: takes an abandoned cache out of the list.
    void remove_abandoned(thread_cache& c) noexcept;

    /// Forgets the caches, which no thread has.
    void forget_caches() noexcept { caches_ = nullptr; }

    thread_cache* caches() const noexcept { return caches_; }

    /// Makes sure that forks take the locks of this list, as they do once a cache is in use.
    void register_for_fork() noexcept;

    /// More locks of the allocator that a fork has to take, so that the child finds none of them
    /// taken. Each is null or lives as long as the list.
    constexpr void hold_at_fork(std::mutex* one, std::mutex* other) noexcept
    {
        held_at_fork_ = {one, other};
    }

    mutable std::recursive_mutex growing; // a new-handler may trim the pool that grows
    mutable std::mutex lock;

protected:
    ~thread_cache_list() = default;

private:
    friend struct os::registry;

    open_function set_open_; // of the derived cache
    std::array<std::mutex*, 2> held_at_fork_{};
    std::atomic<bool> registered_ = false;
    thread_cache* caches_ = nullptr;       // all of them; protected by `lock`
    std::atomic<std::uint32_t> place_ = 0; // in every table; set when the first cache is in use
};

/// Freezes a list for its lifetime. The caller holds the lock of the list.
class freeze_guard {
public:
    explicit freeze_guard(const thread_cache_list& list) noexcept : list_(list) { list_.freeze(); }
    ~freeze_guard() { list_.thaw(); }
    freeze_guard(const freeze_guard&) = delete;
    freeze_guard& operator=(const freeze_guard&) = delete;

private:
    const thread_cache_list& list_;
};

/// The same with the memory of the caches. `Cache` derives from `thread_cache` and has a
/// `chunk taken`. The first cache is built in, so an allocator that one thread uses takes no
/// memory for caches.
template <class Cache>
class thread_caches : public thread_cache_list {
public:
    template <class... Args>
    constexpr explicit thread_caches(Args&... args) noexcept
        : thread_cache_list(
              [](thread_cache& c, bool open) noexcept { static_cast<Cache&>(c).set_open(open); }),
          built_in_(args...)
    {
        add_abandoned(built_in_);
    }

    /// This thread's cache: found, reclaimed, or made from `args`. Null: no memory for it.
    template <class Source, class... Args>
    Cache* find_or_make(Source& source, Args&... args) noexcept
    {
        Cache* const c = find();
        return c != nullptr ? c : make(std::unique_lock(growing), source, args...);
    }

    /// The same. Null also if this thread would have to wait for one that grows.
    template <class Source, class... Args>
    Cache* try_find_or_make(Source& source, Args&... args) noexcept
    {
        Cache* const c = find();
        return c != nullptr ? c
                            : make(std::unique_lock(growing, std::try_to_lock), source, args...);
    }

    /// Waits for a thread that has frozen the caches.
    void wait_for_thaw() const noexcept { std::lock_guard const until_then(lock); }

    // --- with the lock held

    Cache& built_in() noexcept { return built_in_; }
    Cache* first() const noexcept { return static_cast<Cache*>(caches()); }
    static Cache* next(Cache* c) noexcept { return static_cast<Cache*>(c->next_in_list()); }

    std::size_t bytes() const noexcept
    {
        std::size_t sum = 0;
        for (Cache* c = first(); c != nullptr; c = next(c))
            sum += c->taken.bytes;
        return sum;
    }

    /// Gives the memory of abandoned caches back where `is_empty(cache)`; not the built-in one's.
    template <class Source, class IsEmpty>
    void release_abandoned(Source& source, IsEmpty is_empty) noexcept
    {
        for (Cache* c = first(); c != nullptr;) {
            Cache* const after = next(c);
            if (c->is_abandoned() && c != &built_in_ && is_empty(*c)) {
                remove_abandoned(*c);
                give(source, c->taken);
            }
            c = after;
        }
    }

    // --- after `detach_all`, while no other thread is inside a call

    template <class Source>
    void release_all(Source& source) noexcept
    {
        release_abandoned(source, [](const Cache&) { return true; });
    }
    /// For a source that takes all memory back by itself.
    void forget_all() noexcept
    {
        forget_caches();
        add_abandoned(built_in_);
    }

private:
    Cache* find() noexcept
    {
        thread_cache* const c = mine();
        return static_cast<Cache*>(c != nullptr ? c : find_or_reclaim());
    }

    template <class Source, class... Args>
    Cache* make(std::unique_lock<std::recursive_mutex> alone, Source& source,
                Args&... args) noexcept
    {
        chunk const taken = alone ? try_take(source, layout_of<Cache>()) : chunk{};
        if (taken.data == nullptr)
            return nullptr;
        auto* const c = ::new (taken.data) Cache(args...);
        c->taken = taken;
        if (attach(*c))
            return c;
        give(source, taken);
        return nullptr;
    }

    Cache built_in_;
};

} // namespace mallard
