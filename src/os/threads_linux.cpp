// Maintains the thread caches of pools while threads start, exit and fork. Executes a memory fence
// in all threads of the process.
#include "table_store_linux.hpp"

#include <mallard/detail/base/fatal_objects.hpp>
#include <mallard/detail/threads/thread_caches.hpp>

#include <memory>
#include <thread>

#include <cxxabi.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

// The handle of this module, for __cxa_thread_atexit (Itanium C++ ABI). Each thread with a table
// registers this handle, so `dlclose` unloads the module only when the last such thread has exited.
extern "C" void* __dso_handle; // NOLINT(bugprone-reserved-identifier)

namespace mallard {
namespace os {
namespace {

bool membarrier(int command) noexcept
{
    return ::syscall(SYS_membarrier, command, 0, 0) == 0;
}

/// Registers this process for `barrier_in_all_threads`. Called before the first thread cache is
/// created. If this fails, no thread gets a cache.
bool prepare_barrier() noexcept
{
    return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

/// Executes a full memory fence in every thread of this process.
void barrier_in_all_threads() noexcept
{
    // The process may have entered a sandbox since `prepare_barrier`.
    if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) &&
        !(prepare_barrier() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)))
        fatal_no_barrier();
}

// Whether C++ has destroyed this thread's thread-local objects. Afterwards the destructors of
// pthread keys may still free blocks, but no callback runs after these destructors. So the thread
// gets no further cache.
constinit thread_local bool is_late = false;

} // namespace

constinit thread_table empty_thread_table;
constinit thread_local thread_table* this_thread_table = &empty_thread_table;

/// All thread tables and all cache lists. One lock protects the tables and lists while threads
/// start, exit and fork.
struct registry {
    std::mutex lock;
    table_store store;
    thread_table* tables = nullptr;
    thread_cache_list* lists = nullptr;
    std::uint32_t next_place = 0;

    /// Registers the fork handlers and the memory fence, once. Returns false if this fails, so that
    /// threads cannot have caches.
    static bool prepare() noexcept;

    /// Returns this thread's table, which is created if necessary. Returns null if there is no
    /// memory, or if the thread is exiting.
    thread_table* table() noexcept
    {
        if (this_thread_table != &empty_thread_table)
            return this_thread_table;
        if (is_late || !prepare())
            return nullptr;
        thread_table* fresh = nullptr;
        {
            std::lock_guard const alone(lock);
            fresh = store.take();
            if (fresh == nullptr)
                return nullptr;
            insert(tables, *fresh);
        }
        this_thread_table = fresh; // set before the next call, which may allocate
        if (abi::__cxa_thread_atexit(at_thread_exit, fresh, &__dso_handle) != 0) {
            at_thread_exit(fresh);
            return nullptr;
        }
        return fresh;
    }

    /// Makes `c` a cache of the thread that owns the table `t`. The caller holds the locks of the
    /// registry and of the list.
    void set_thread(thread_cache_list& list, thread_cache& c, thread_table& t) noexcept
    {
        c.thread_ = &t;
        c.next_of_thread_ = std::exchange(t.caches, &c);
        add(list);
        show(list, c, t);
    }

    /// Adds a list to the lists that the fork handlers lock.
    void add(thread_cache_list& list) noexcept
    {
        if (list.listed_at != nullptr)
            return;
        insert(lists, list);
        list.place_.store(next_place++ % thread_table::places, std::memory_order_relaxed);
        list.registered_.store(true, std::memory_order_relaxed);
    }

    /// Returns the cache of `list` that belongs to the thread with the table `t`, or null.
    static thread_cache* find(const thread_cache_list& list, const thread_table& t) noexcept
    {
        thread_cache* c = t.caches;
        while (c != nullptr && c->list_ != &list)
            c = c->next_of_thread_;
        return c;
    }

    /// Writes the cache to the element of the table that `thread_cache_list::mine` reads. Only the
    /// thread itself writes to its table, except that `take_from_thread` clears such an element.
    static void show(const thread_cache_list& list, thread_cache& c, thread_table& t) noexcept
    {
        std::size_t const at = list.place_.load(std::memory_order_relaxed);
        t.lists[at].store(nullptr, std::memory_order_relaxed);
        t.caches_of[at] = &c;
        t.lists[at].store(&list, std::memory_order_relaxed);
    }

    /// Removes all caches of a list from their threads. The caller holds the locks of the registry
    /// and of the list.
    void remove(thread_cache_list& list) noexcept
    {
        for (thread_cache* c = list.caches_; c != nullptr; c = c->next_in_list_)
            if (c->thread_ != nullptr)
                take_from_thread(list, *c);
        if (list.listed_at != nullptr)
            erase(list);
        list.registered_.store(false, std::memory_order_relaxed);
    }

    /// Unmaps the tables when this code is unloaded or the program exits, unless a thread still has
    /// a table.
    void end() noexcept
    {
        std::lock_guard const alone(lock);
        if (tables == nullptr)
            store.unmap();
    }

private:
    static void take_from_thread(const thread_cache_list& list, thread_cache& c) noexcept
    {
        thread_table& t = *std::exchange(c.thread_, nullptr);
        thread_cache** at = &t.caches;
        while (*at != &c)
            at = &(*at)->next_of_thread_;
        *at = c.next_of_thread_;
        // Clear the element only if no other list uses it now.
        thread_cache_list const* shown = &list;
        t.lists[list.place_.load(std::memory_order_relaxed)].compare_exchange_strong(
            shown, nullptr, std::memory_order_relaxed);
    }

    /// Abandons the caches of an exited thread, with their content.
    void retire(thread_table& t) noexcept
    {
        for (thread_cache* c = t.caches; c != nullptr;) {
            std::lock_guard const alone(c->list_->lock);
            c->thread_ = nullptr;
            // In the child of a fork, mark the cache as not busy, because the fork may have
            // interrupted a call.
            c->busy_.store(0, std::memory_order_relaxed);
            c = c->next_of_thread_;
        }
        erase(t);
        store.give(t);
    }

    template <class Node>
    static void insert(Node*& list, Node& n) noexcept
    {
        n.next_listed = list;
        n.listed_at = &list;
        if (list != nullptr)
            list->listed_at = &n.next_listed;
        list = &n;
    }
    template <class Node>
    static void erase(Node& n) noexcept
    {
        *n.listed_at = n.next_listed;
        if (n.next_listed != nullptr)
            n.next_listed->listed_at = n.listed_at;
        n.listed_at = nullptr;
    }

    static void at_thread_exit(void* table) noexcept;

    // During a fork, the forking thread holds every lock, and all lists are frozen. So no other
    // thread is using a cache or a source, and all data are consistent in the child.
    static void before_fork() noexcept;
    static bool try_hold(thread_cache_list& list) noexcept;
    static void unlock_until(thread_cache_list* end) noexcept;
    static void after_fork() noexcept;
    static void in_child() noexcept;
};

namespace {

// The registry has no destructor, because threads may live longer than static objects.
constinit registry all;

} // namespace

bool registry::prepare() noexcept
{
    static bool const done =
        prepare_barrier() && ::pthread_atfork(before_fork, after_fork, in_child) == 0;
    return done;
}

namespace {
// Registers the fork handlers early. Before a fork, handlers run in the reverse order of their
// registration. So handlers that are registered later run before this handler locks the lists, and
// may use a pool.
[[maybe_unused]] bool const prepared_at_start = registry::prepare();

[[gnu::destructor]] void unload()
{
    all.end();
}
} // namespace

void registry::at_thread_exit(void* table) noexcept
{
    is_late = true;
    this_thread_table = &empty_thread_table;
    std::lock_guard const alone(all.lock);
    all.retire(*static_cast<thread_table*>(table));
}

void registry::before_fork() noexcept
{
    all.lock.lock();
    // One allocator may be the source of another, so threads may lock the lists in any order.
    // Therefore this thread never waits for the lock of a list while it holds the locks of other
    // lists. Instead, this thread unlocks all lists and starts again.
    for (thread_cache_list* list = all.lists; list != nullptr;) {
        if (try_hold(*list)) {
            list = list->next_listed;
        } else {
            unlock_until(list);
            all.lock.unlock(); // the thread that holds the missing lock may wait for this thread
            std::this_thread::yield();
            all.lock.lock();
            list = all.lists;
        }
    }
}

void registry::unlock_until(thread_cache_list* end) noexcept
{
    for (thread_cache_list* list = all.lists; list != end; list = list->next_listed) {
        list->thaw();
        for (std::mutex* const other : list->held_at_fork_)
            if (other != nullptr)
                other->unlock();
        list->lock.unlock();
        list->growing.unlock();
    }
}

bool registry::try_hold(thread_cache_list& list) noexcept
{
    std::unique_lock growing(list.growing, std::try_to_lock);
    if (!growing)
        return false;
    std::unique_lock lock(list.lock, std::try_to_lock);
    if (!lock)
        return false;
    std::array<std::unique_lock<std::mutex>, 2> others;
    for (std::size_t i = 0; i < others.size(); ++i) {
        if (list.held_at_fork_[i] == nullptr)
            continue;
        others[i] = std::unique_lock(*list.held_at_fork_[i], std::try_to_lock);
        if (!others[i])
            return false;
    }
    list.freeze();
    for (auto& other : others)
        other.release();
    lock.release();
    growing.release();
    return true;
}

void registry::after_fork() noexcept
{
    unlock_until(nullptr);
    all.lock.unlock();
}

void registry::in_child() noexcept
{
    after_fork();
    std::lock_guard const alone(all.lock);
    for (thread_table* t = all.tables; t != nullptr;) {
        thread_table* const next = t->next_listed;
        if (t != this_thread_table)
            all.retire(*t);
        t = next;
    }
}

} // namespace os

thread_cache* thread_cache_list::find_or_reclaim() noexcept
{
    os::thread_table* const mine = os::all.table();
    if (mine == nullptr)
        return nullptr;
    std::scoped_lock const alone(os::all.lock);
    if (thread_cache* const own = os::registry::find(*this, *mine)) {
        os::registry::show(*this, *own, *mine);
        return own;
    }
    std::lock_guard const alone_in_list(lock);
    for (thread_cache* c = caches_; c != nullptr; c = c->next_in_list_) {
        if (c->is_abandoned()) {
            os::all.set_thread(*this, *c, *mine);
            return c;
        }
    }
    return nullptr;
}

bool thread_cache_list::attach(thread_cache& fresh) noexcept
{
    os::thread_table* const mine = os::all.table();
    if (mine == nullptr)
        return false;
    std::lock_guard const alone(os::all.lock);
    std::lock_guard const alone_in_list(lock);
    add_abandoned(fresh);
    os::all.set_thread(*this, fresh, *mine);
    return true;
}

void thread_cache_list::register_for_fork() noexcept
{
    if (registered_.load(std::memory_order_relaxed))
        return;
    std::lock_guard const alone(os::all.lock);
    os::all.add(*this);
}

void thread_cache_list::detach_all() noexcept
{
    std::lock_guard const alone(os::all.lock);
    std::lock_guard const alone_in_list(lock);
    os::all.remove(*this);
}

void thread_cache_list::freeze() const noexcept
{
    bool in_use = false;
    for (thread_cache* c = caches_; c != nullptr; c = c->next_in_list_) {
        c->frozen_.store(1, std::memory_order_relaxed);
        set_open_(*c, false);
        in_use = in_use || !c->is_abandoned();
    }
    if (in_use)
        os::barrier_in_all_threads();
    for (thread_cache* c = caches_; c != nullptr; c = c->next_in_list_)
        while (c->busy_.load(std::memory_order_acquire) != 0)
            std::this_thread::yield();
}

void thread_cache_list::thaw() const noexcept
{
    for (thread_cache* c = caches_; c != nullptr; c = c->next_in_list_) {
        set_open_(*c, true);
        c->frozen_.store(0, std::memory_order_release);
    }
}

void thread_cache_list::remove_abandoned(thread_cache& c) noexcept
{
    thread_cache** at = &caches_;
    while (*at != &c)
        at = &(*at)->next_in_list_;
    *at = c.next_in_list_;
}

} // namespace mallard
