// The thread caches of one shared allocator, and how a thread finds its cache. The functions that
// run when a thread exits and at a fork are in src/os/threads_linux.cpp. So `sync::thread_cached`
// and `shared_arena` need the compiled library; all other modes of `sync` are header-only.
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
    Node** listed_at = nullptr; // the pointer to this node; null if in no list
};
} // namespace os

/// The data that one thread keeps for one shared allocator. Each allocator derives its own type
/// from this class. When the thread exits, its cache is abandoned until another thread reclaims it.
///
/// The content of a cache may be used by these threads:
///   - the thread that owns the cache, between an `enter` that returns true and `leave`;
///   - the thread that owns the cache, while it holds the lock of the list;
///   - any thread that holds the lock of the list, if the cache is abandoned or the list is frozen.
///
/// `enter` writes one word and reads another without a fence in between. Instead, the rare
/// operation `thread_cache_list::freeze` makes every thread execute a fence (Dice, Huang, Yang,
/// "Asymmetric Dekker synchronization", 2001; docs/decisions/0012).
class thread_cache {
public:
    thread_cache() noexcept = default;
    thread_cache(const thread_cache&) = delete;
    thread_cache& operator=(const thread_cache&) = delete;

    /// Enters the cache. Returns false if the list is frozen. Call `leave` in either case.
    [[gnu::always_inline]] bool enter() noexcept
    {
        announce();
        return frozen_.load(std::memory_order_acquire) == 0;
    }
    /// Performs the first half of `enter`. Records that the thread is inside, but does not test
    /// whether the list is frozen. This is for caches whose calls fail while the cache is closed
    /// (see `set_open`).
    [[gnu::always_inline]] void announce() noexcept
    {
        busy_.store(1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    [[gnu::always_inline]] void leave() noexcept { busy_.store(0, std::memory_order_release); }

    thread_cache* next_in_list() const noexcept { return next_in_list_; }
    bool is_abandoned() const noexcept { return thread_ == nullptr; }

    /// Opens or closes the cache. A freeze closes the cache, and a thaw opens it. If a derived type
    /// calls `announce` instead of `enter`, it needs its own `set_open`, which makes its calls fail
    /// while the cache is closed.
    void set_open(bool) noexcept {}

private:
    friend class thread_cache_list;
    friend struct os::registry;

    using flag = std::uint32_t;

    thread_cache* next_in_list_ = nullptr;
    thread_cache_list* list_ = nullptr;
    // A thread that writes `thread_` or the next member holds both the lock of the registry and the
    // lock of the list. A reader needs only one of the two locks.
    os::thread_table* thread_ = nullptr;
    thread_cache* next_of_thread_ = nullptr;
    // These members are last, so that the data of a derived cache begin on the same cache line. A
    // call writes to these members and to those data, and processors combine adjacent stores of
    // whole words (docs/decisions/0014).
    alignas(cache_line_bytes) std::atomic<flag> busy_{0};
    std::atomic<flag> frozen_{0};
};

namespace os {

/// The caches of one thread. The two arrays find the caches for up to 64 allocators without a
/// search. The list `caches` holds all caches.
struct alignas(false_sharing_bytes) thread_table : listed<thread_table> {
    static constexpr std::size_t places = 64;

    constexpr thread_table() noexcept = default;

    std::array<std::atomic<const thread_cache_list*>, places> lists{};
    std::array<thread_cache*, places> caches_of{}; // not null where `lists` is not null
    thread_cache* caches = nullptr;                // protected by the registry's lock
};

/// The table of a thread that has no caches. No thread writes to this object.
extern thread_table empty_thread_table;

/// This thread's table. The pointer uses 8 bytes of thread-local data in the initial-exec model. A
/// library that is loaded at run time may use only little of such data.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local thread_table* this_thread_table;

} // namespace os

/// A mutex that its owner may lock again. Its constructor is constexpr, while in some standard
/// libraries the constructor of `std::recursive_mutex` is not. In the child of a fork, the thread
/// that forked is still the owner.
class recursive_mutex {
public:
    constexpr recursive_mutex() noexcept = default;
    recursive_mutex(const recursive_mutex&) = delete;
    recursive_mutex& operator=(const recursive_mutex&) = delete;

    void lock()
    {
        if (!lock_again()) {
            mutex_.lock();
            owner_.store(this_thread(), std::memory_order_relaxed);
        }
    }
    bool try_lock()
    {
        if (lock_again())
            return true;
        if (!mutex_.try_lock())
            return false;
        owner_.store(this_thread(), std::memory_order_relaxed);
        return true;
    }
    void unlock()
    {
        if (again_ > 0) {
            --again_;
            return;
        }
        owner_.store(nullptr, std::memory_order_relaxed);
        mutex_.unlock();
    }

private:
    /// Returns an address that differs in each thread.
    static const void* this_thread() noexcept { return &os::this_thread_table; }

    bool lock_again() noexcept
    {
        if (owner_.load(std::memory_order_relaxed) != this_thread())
            return false;
        ++again_;
        return true;
    }

    std::mutex mutex_;
    std::atomic<const void*> owner_{nullptr}; // only the owner itself finds its own address here
    std::size_t again_ = 0; // how often the owner locked again; only the owner uses it
};

/// All thread caches of one shared allocator, and the allocator's locks.
///
/// The locks, in the order in which a thread acquires them:
///   growing    held during every call of the source, so that no thread is inside the source
///              while a fork holds this lock
///   (the lock of the registry, inside the functions below)
///   lock       for all data that the threads share; the source is not called under it
///
/// The base class links all lists that have caches in use.
class thread_cache_list : os::listed<thread_cache_list> {
public:
    using open_function = void (*)(thread_cache&, bool open) noexcept;

    constexpr explicit thread_cache_list(open_function set_open) noexcept : set_open_(set_open) {}
    thread_cache_list(const thread_cache_list&) = delete;
    thread_cache_list& operator=(const thread_cache_list&) = delete;

    /// Returns this thread's cache. If the result is null, call `find_or_reclaim`.
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

    /// Returns this thread's cache after `mine` returned null. The thread may have a cache that
    /// `mine` did not find, because another list uses the same place in the table. Otherwise the
    /// thread reclaims an abandoned cache. Returns null if no cache is abandoned, or if there is no
    /// memory for the table of a new thread.
    thread_cache* find_or_reclaim() noexcept;

    /// Makes `fresh` this thread's cache. Returns false if there is no memory for the thread's
    /// table.
    bool attach(thread_cache& fresh) noexcept;

    /// Adds a cache that belongs to no thread. Requires that no other thread can access the list
    /// yet.
    constexpr void add_abandoned(thread_cache& c) noexcept
    {
        c.list_ = this;
        c.next_in_list_ = std::exchange(caches_, &c);
    }

    /// Removes all caches from their threads. Requires that no other thread is inside a call to the
    /// allocator. Threads may exit during this call.
    void detach_all() noexcept;

    /// Freezes all caches. Until `thaw`, the caller may use the content of every cache. The caller
    /// holds `lock`.
    void freeze() const noexcept;
    void thaw() const noexcept;

    /// Removes an abandoned cache from the list. The caller holds `lock`.
    void remove_abandoned(thread_cache& c) noexcept;

    /// Removes all caches from the list. Requires that no thread owns a cache.
    void forget_caches() noexcept { caches_ = nullptr; }

    thread_cache* caches() const noexcept { return caches_; }

    /// Makes every fork acquire the locks of this list, even before a cache is in use.
    void register_for_fork() noexcept;

    /// Registers up to two more locks of the allocator, which a fork has to acquire, so that no
    /// lock stays locked in the child. Null stands for no lock. A lock must exist as long as the
    /// list.
    constexpr void hold_at_fork(std::mutex* one, std::mutex* other) noexcept
    {
        held_at_fork_ = {one, other};
    }

    mutable recursive_mutex growing; // recursive, because a new-handler may trim the pool that
                                     // grows
    mutable std::mutex lock;

protected:
    ~thread_cache_list() = default;

private:
    friend struct os::registry;

    open_function set_open_; // `set_open` of the derived cache type
    std::array<std::mutex*, 2> held_at_fork_{};
    std::atomic<bool> registered_ = false;
    thread_cache* caches_ = nullptr; // list of all caches; protected by `lock`
    // The index of this list in the table of every thread; set when the first cache is in use.
    std::atomic<std::uint32_t> place_ = 0;
};

/// Freezes a list in its constructor, and thaws the list in its destructor. The caller holds the
/// lock of the list.
class freeze_guard {
public:
    explicit freeze_guard(const thread_cache_list& list) noexcept : list_(list) { list_.freeze(); }
    ~freeze_guard() { list_.thaw(); }
    freeze_guard(const freeze_guard&) = delete;
    freeze_guard& operator=(const freeze_guard&) = delete;

private:
    const thread_cache_list& list_;
};

/// A `thread_cache_list` that also manages the memory of the caches. `Cache` derives from
/// `thread_cache` and has a `chunk taken`. The first cache is built in, so an allocator that only
/// one thread uses allocates no memory for caches.
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

    /// Returns this thread's cache, which is found, reclaimed, or made from `args`. Returns null if
    /// there is no memory for a cache.
    template <class Source, class... Args>
    Cache* find_or_make(Source& source, Args&... args) noexcept
    {
        Cache* const c = find();
        return c != nullptr ? c : make(std::unique_lock(growing), source, args...);
    }

    /// Like the function above, but also returns null if this thread would have to wait for a
    /// thread that grows the pool.
    template <class Source, class... Args>
    Cache* try_find_or_make(Source& source, Args&... args) noexcept
    {
        Cache* const c = find();
        return c != nullptr ? c
                            : make(std::unique_lock(growing, std::try_to_lock), source, args...);
    }

    /// Waits until the thread that has frozen the caches thaws them.
    void wait_for_thaw() const noexcept { std::lock_guard const until_then(lock); }

    // --- The functions below require that the lock is held.

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

    /// Returns the memory of each abandoned cache for which `is_empty(cache)` is true, except for
    /// the built-in cache.
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

    // --- The functions below require that `detach_all` was called, and that no other thread is
    // inside a call.

    template <class Source>
    void release_all(Source& source) noexcept
    {
        release_abandoned(source, [](const Cache&) { return true; });
    }
    /// Discards all caches without returning their memory. Called when the source frees all of its
    /// memory in one call.
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
    Cache* make(std::unique_lock<recursive_mutex> alone, Source& source, Args&... args) noexcept
    {
        chunk const taken = alone ? take_verified<false>(source, layout_of<Cache>()) : chunk{};
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
