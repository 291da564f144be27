// Which thread has which fronts, over births, deaths and forks; and a fence for
// all threads at once.
#include "table_store_linux.hpp"

#include <mallard/detail/threads/thread_fronts.hpp>

#include <memory>
#include <thread>

#include <cxxabi.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

// Of the Itanium C++ ABI, as __cxa_thread_atexit is. As long as a thread has a table,
// this code stays loaded: `dlclose` leaves it to the end of the last such thread.
extern "C" void* __dso_handle; // NOLINT(bugprone-reserved-identifier)

namespace mallard {
namespace os {
namespace {

bool membarrier(int command) noexcept
{
    return ::syscall(SYS_membarrier, command, 0, 0) == 0;
}

/// Before any thread has a front. Without it no thread gets one.
bool prepare_barrier() noexcept
{
    return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

/// A full fence in every thread of this process.
void barrier_in_all_threads() noexcept
{
    // Some sandbox may have closed since.
    if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) &&
        !(prepare_barrier() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)))
        fatal_no_barrier();
}

// When C++ has destroyed what is the thread's, C still has keys, whose destructors
// may free. Nobody would be told when those are done, so they get no front.
constinit thread_local bool is_late = false;

} // namespace

constinit thread_table no_fronts;
constinit thread_local thread_table* this_thread_table = &no_fronts;

/// All tables and all homes, behind one lock: that of births, deaths and forks.
struct registry {
    std::mutex lock;
    table_store store;
    thread_table* tables = nullptr;
    front_home* homes = nullptr;
    std::uint32_t next_place = 0;

    /// Once; whether threads can have fronts.
    static bool listens() noexcept;

    /// This thread's table, made if need be; null when there is no memory.
    thread_table* table() noexcept
    {
        if (this_thread_table != &no_fronts)
            return this_thread_table;
        if (is_late || !listens())
            return nullptr;
        thread_table* fresh = nullptr;
        {
            std::lock_guard const alone(lock);
            fresh = store.take();
            if (fresh == nullptr)
                return nullptr;
            insert(tables, *fresh);
        }
        this_thread_table = fresh; // by now, as what follows may allocate
        if (abi::__cxa_thread_atexit(at_thread_exit, fresh, &__dso_handle) != 0) {
            at_thread_exit(fresh);
            return nullptr;
        }
        return fresh;
    }

    /// `f` becomes a front of the thread of `t`. Both locks are held.
    void enroll(front_home& home, thread_front& f, thread_table& t) noexcept
    {
        f.thread_ = &t;
        f.next_of_thread_ = std::exchange(t.fronts, &f);
        enlist(home);
        show(home, f, t);
    }

    void enlist(front_home& home) noexcept
    {
        if (home.listed_at != nullptr)
            return;
        insert(homes, home);
        home.place_.store(next_place++ % thread_table::places, std::memory_order_relaxed);
        home.enlisted_.store(true, std::memory_order_relaxed);
    }

    static thread_front* own_of(const front_home& home, const thread_table& t) noexcept
    {
        thread_front* f = t.fronts;
        while (f != nullptr && f->home_ != &home)
            f = f->next_of_thread_;
        return f;
    }

    /// Where `front_home::here` looks. Only the thread itself writes its table, but
    /// for a home that dies, which is struck out.
    static void show(const front_home& home, thread_front& f, thread_table& t) noexcept
    {
        std::size_t const at = home.place_.load(std::memory_order_relaxed);
        t.homes[at].store(nullptr, std::memory_order_relaxed);
        t.fronts_of[at] = &f;
        t.homes[at].store(&home, std::memory_order_relaxed);
    }

    /// Its fronts are no thread's. Both locks are held.
    void withdraw(front_home& home) noexcept
    {
        for (thread_front* f = home.fronts_; f != nullptr; f = f->next_of_home_)
            if (f->thread_ != nullptr)
                strike(home, *f);
        if (home.listed_at != nullptr)
            erase(home);
        home.enlisted_.store(false, std::memory_order_relaxed);
    }

    /// What is left when this code is unloaded, or the program at its end.
    void end() noexcept
    {
        std::lock_guard const alone(lock);
        if (tables == nullptr)
            store.unmap();
    }

private:
    static void strike(const front_home& home, thread_front& f) noexcept
    {
        thread_table& t = *std::exchange(f.thread_, nullptr);
        thread_front** at = &t.fronts;
        while (*at != &f)
            at = &(*at)->next_of_thread_;
        *at = f.next_of_thread_;
        front_home const* shown = &home; // or another one by now
        t.homes[home.place_.load(std::memory_order_relaxed)].compare_exchange_strong(
            shown, nullptr, std::memory_order_relaxed);
    }

    /// Its fronts become idle, with all that they hold.
    void retire(thread_table& t) noexcept
    {
        for (thread_front* f = t.fronts; f != nullptr;) {
            std::lock_guard const nobody_looks(f->home_->lock);
            f->thread_ = nullptr;
            f->busy_.store(0, std::memory_order_relaxed); // by one that a fork cut short
            f = f->next_of_thread_;
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

    // While a fork goes on, no thread is inside any front or any source, so the
    // child finds all as it should be. There the other threads are gone.
    static void before_fork() noexcept;
    static bool try_hold(front_home& home) noexcept;
    static void unlock_until(front_home* end) noexcept;
    static void after_fork() noexcept;
    static void in_child() noexcept;
};

namespace {

constinit registry all; // no destructor: threads may outlive static objects

} // namespace

bool registry::listens() noexcept
{
    static bool const done =
        prepare_barrier() && ::pthread_atfork(before_fork, after_fork, in_child) == 0;
    return done;
}

namespace {
// Early, so that the fork handlers of others, which may use a pool, are called
// while ours do not hold all of them.
[[maybe_unused]] bool const listens_from_the_start = registry::listens();

[[gnu::destructor]] void end_of_this_code()
{
    all.end();
}
} // namespace

void registry::at_thread_exit(void* table) noexcept
{
    is_late = true;
    this_thread_table = &no_fronts;
    std::lock_guard const alone(all.lock);
    all.retire(*static_cast<thread_table*>(table));
}

void registry::before_fork() noexcept
{
    all.lock.lock();
    // The source of one home may be another home, in whichever order they stand
    // here: so none is waited for while others are held.
    for (front_home* home = all.homes; home != nullptr;) {
        if (try_hold(*home)) {
            home = home->next_listed;
        } else {
            unlock_until(home);
            all.lock.unlock(); // who has the lock that is missing may wait for this one
            std::this_thread::yield();
            all.lock.lock();
            home = all.homes;
        }
    }
}

void registry::unlock_until(front_home* end) noexcept
{
    for (front_home* home = all.homes; home != end; home = home->next_listed) {
        home->thaw();
        for (std::mutex* const other : home->held_at_fork_)
            if (other != nullptr)
                other->unlock();
        home->lock.unlock();
        home->growing.unlock();
    }
}

bool registry::try_hold(front_home& home) noexcept
{
    std::unique_lock growing(home.growing, std::try_to_lock);
    if (!growing)
        return false;
    std::unique_lock lock(home.lock, std::try_to_lock);
    if (!lock)
        return false;
    std::array<std::unique_lock<std::mutex>, 2> others;
    for (std::size_t i = 0; i < others.size(); ++i) {
        if (home.held_at_fork_[i] == nullptr)
            continue;
        others[i] = std::unique_lock(*home.held_at_fork_[i], std::try_to_lock);
        if (!others[i])
            return false;
    }
    home.freeze();
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
    // A recursive mutex knows its thread by a number, which is another here.
    for (front_home* home = all.homes; home != nullptr; home = home->next_listed) {
        std::construct_at(&home->growing);
        home->growing.lock();
    }
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

thread_front* front_home::find_or_adopt() noexcept
{
    os::thread_table* const mine = os::all.table();
    if (mine == nullptr)
        return nullptr;
    std::scoped_lock const alone(os::all.lock);
    if (thread_front* const own = os::registry::own_of(*this, *mine)) {
        os::registry::show(*this, *own, *mine);
        return own;
    }
    std::lock_guard const nobody_looks(lock);
    for (thread_front* f = fronts_; f != nullptr; f = f->next_of_home_) {
        if (f->is_idle()) {
            os::all.enroll(*this, *f, *mine);
            return f;
        }
    }
    return nullptr;
}

bool front_home::join(thread_front& fresh) noexcept
{
    os::thread_table* const mine = os::all.table();
    if (mine == nullptr)
        return false;
    std::lock_guard const alone(os::all.lock);
    std::lock_guard const nobody_looks(lock);
    add_idle(fresh);
    os::all.enroll(*this, fresh, *mine);
    return true;
}

void front_home::enlist() noexcept
{
    if (enlisted_.load(std::memory_order_relaxed))
        return;
    std::lock_guard const alone(os::all.lock);
    os::all.enlist(*this);
}

void front_home::part() noexcept
{
    std::lock_guard const alone(os::all.lock);
    std::lock_guard const nobody_looks(lock);
    os::all.withdraw(*this);
}

void front_home::freeze() const noexcept
{
    bool in_use = false;
    for (thread_front* f = fronts_; f != nullptr; f = f->next_of_home_) {
        f->frozen_.store(1, std::memory_order_relaxed);
        set_open_(*f, false);
        in_use = in_use || !f->is_idle();
    }
    if (in_use)
        os::barrier_in_all_threads();
    for (thread_front* f = fronts_; f != nullptr; f = f->next_of_home_)
        while (f->busy_.load(std::memory_order_acquire) != 0)
            std::this_thread::yield();
}

void front_home::thaw() const noexcept
{
    for (thread_front* f = fronts_; f != nullptr; f = f->next_of_home_) {
        set_open_(*f, true);
        f->frozen_.store(0, std::memory_order_release);
    }
}

void front_home::remove_idle(thread_front& f) noexcept
{
    thread_front** at = &fronts_;
    while (*at != &f)
        at = &(*at)->next_of_home_;
    *at = f.next_of_home_;
}

} // namespace mallard
