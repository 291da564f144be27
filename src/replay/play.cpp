#include "play.hpp"

#include "../os/system.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include <unistd.h>

namespace mallard::replay {
namespace {

/// The stacks are small, since the loop of a thread needs little stack, and mallocs do not need
/// much more.
constexpr std::size_t stack_bytes = std::size_t{256} << 10;
/// The number of times that a waiting thread reads a position before the thread sleeps. This number
/// of reads takes a few microseconds.
constexpr unsigned spins_max = 200;

} // namespace

play::play(stream const& of, windows& memory, options const& chosen) noexcept
    : stream_(of), memory_(memory), chosen_(chosen), loop_(loop_for(chosen)),
      spins_(::sysconf(_SC_NPROCESSORS_ONLN) > 1 ? spins_max : 0),
      slots_(of.header().slots, "the slots"),
      threads_(of.threads().count(), "the threads of the replay"),
      positions_(of.threads().count(), "the positions of the threads"), targets_(of)
{
    slots_.touch();
    threads_.touch();
    positions_.touch();
    for (std::size_t i = 0; i < threads_.count(); ++i) {
        std::construct_at(&threads_[i]);
        std::construct_at(&positions_[i]);
    }
    ::pthread_attr_init(&attributes_);
    ::pthread_attr_setstacksize(&attributes_, stack_bytes);
}

play::~play()
{
    ::pthread_attr_destroy(&attributes_);
}

void play::prepare(std::uint32_t thread) noexcept
{
    playing_thread& t = threads_[thread];
    t.of = this;
    t.number = thread;
    t.from = reader::of(stream_.threads()[thread], memory_.take());
}

op const* play::refill(playing_thread& of) noexcept
{
    clock_stopped const stopped(of.off);
    return of.from.refill(stream_, memory_.ops_max());
}

void* play::run_thread(void* thread) noexcept
{
    playing_thread& self = *static_cast<playing_thread*>(thread);
    self.handle = ::pthread_self();
    play& of = *self.of;
    of.loop_(of, self);
    of.memory_.give(self.from.into);
    self.next_ended = of.ended_.load(std::memory_order_relaxed);
    while (!of.ended_.compare_exchange_weak(self.next_ended, self.number)) {}
    of.ended_.notify_one();
    return nullptr;
}

void play::start(playing_thread& by, std::uint32_t thread) noexcept
{
    {
        clock_stopped const stopped(by.off);
        std::unique_lock const held(join_lock_, std::try_to_lock);
        if (held.owns_lock())
            join_ended();
        prepare(thread);
    }
    playing_thread& t = threads_[thread];
    pthread_t unused; // not used; a thread that may exit earlier stores its own handle
    int const error = ::pthread_create(&unused, &attributes_, &play::run_thread, &t);
    if (error != 0)
        fail(status_refused, "the replay is not complete",
             "ulimit -u; cat /proc/sys/kernel/threads-max",
             "the system could not start thread %u: %s", thread, std::strerror(error));
}

/// Joins the threads that have exited, so that their stacks can be reused. Removes the whole list
/// in one step. Threads that are pushed afterwards are joined by the next call. The caller holds
/// `join_lock_`.
void play::join_ended() noexcept
{
    std::uint32_t thread = ended_.exchange(none);
    while (thread != none) {
        std::uint32_t const next = threads_[thread].next_ended;
        ::pthread_join(threads_[thread].handle, nullptr);
        ++joined_;
        thread = next;
    }
}

/// Joins all threads. Another thread may hold `join_lock_` and join threads, too. When that other
/// thread exits, it wakes this thread again.
void play::join_all() noexcept
{
    for (;;) {
        {
            std::lock_guard const held(join_lock_);
            join_ended();
            if (joined_ == threads_.count())
                return;
        }
        ended_.wait(none);
    }
}

play_result play::run() noexcept
{
    prepare(0);
    os::barrier_in_all_threads(); // the first barrier is slow if there are several threads
    memory_use const start = memory_use::read();
    forget_peak();
    process_use const before = process_use::read();
    loop_(*this, threads_[0]);
    join_all();
    play_result result = result_of(before);
    result.start_rss_kib = start.rss_kib;
    return result;
}

play_result play::result_of(process_use const& before) noexcept
{
    play_result result;
    result.used = process_use::read().since(before);
    memory_use const memory = memory_use::read();
    result.peak_rss_kib = memory.peak_rss_kib;
    result.after_rss_kib = memory.rss_kib;
    result.own_bytes = slots_.bytes() + threads_.bytes() + positions_.bytes() + memory_.bytes() +
                       stream_.table_bytes();
    for (playing_thread const& t : threads_) {
        result.off.add(t.off);
        result.off_wall_max = std::max(result.off_wall_max, t.off.wall_ns);
        result.failures += t.failures;
        result.successes += t.successes;
        result.empty_blocks += t.empty_blocks;
        result.empty_frees += t.empty_frees;
    }
    return result;
}

} // namespace mallard::replay
