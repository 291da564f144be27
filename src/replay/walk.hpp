// Visits all ops of an op stream in one thread, in an order that is possible in a replay.
#pragma once

#include "stream.hpp"

namespace mallard::replay {

/// A walk over the ops of all threads. The walk visits the ops of one thread until that thread must
/// wait for a position that is not published yet, and continues with another thread. The order is
/// the same in every walk over a stream.
///
///     walk(ops, memory).run([&](std::uint32_t thread, std::uint64_t index, op const& o) { ... });
///
/// One thread may come last. The walk visits ops of this thread only while all other threads wait,
/// and only until another thread can continue. If such a walk visits an op of this thread before an
/// op of another thread, then the edges (the waits of one thread for another) force every replay to
/// execute these two ops in that order.
///
/// The walk ends the process if a thread ends early, is not started exactly once, or waits forever.
/// If the walk over a stream reaches the end, no replay of the stream can deadlock. The reason is
/// that the walk is a linear order of all ops in which each publish precedes its waits. So in a
/// replay, the thread with the earliest op in that order can always continue.
class walk {
public:
    static constexpr std::uint32_t none = UINT32_MAX; ///< no thread

    /// Makes a walk over `of`, with windows from `memory`. The thread `last` comes last.
    walk(stream const& of, windows& memory, std::uint32_t last = none) noexcept
        : stream_(of), memory_(memory), last_(last),
          threads_(of.threads().count(), "the threads of the check")
    {
        for (thread_state& t : threads_)
            t.first_waiting = t.waits_for = none;
    }

    /// Calls `visit(thread, index, op)` for every op.
    template <class Visit>
    void run(Visit visit) noexcept
    {
        start(0, 0, 0);
        while (ready_ != none || is_last_ready_)
            go_on(take_ready(), visit);
        if (ended_ != threads_.count())
            report_deadlock();
    }

    std::size_t live_peak() const noexcept { return live_peak_; } ///< peak number of live threads
    /// Returns the size of the table of threads in bytes.
    std::size_t bytes() const noexcept { return threads_.bytes(); }

private:
    struct thread_state {
        reader from;
        op const* at;                ///< the next op
        std::uint64_t index;         ///< the index of the next op
        std::uint64_t position;      ///< the last published position
        std::uint64_t wanted;        ///< the position for which the thread waits
        std::uint32_t next;          ///< the next thread in the same list
        std::uint32_t first_waiting; ///< the first of the threads that wait for this thread
        std::uint32_t waits_for;     ///< the thread for which this thread waits, or `none`
        bool is_started;
    };

    void start(std::uint32_t thread, std::uint32_t by, std::uint64_t index) noexcept;
    void end(std::uint32_t thread) noexcept;
    void publish(std::uint32_t thread, std::uint64_t position) noexcept;
    bool is_reached(std::uint32_t thread, op const& o) noexcept;
    [[noreturn]] void report_deadlock() const noexcept;

    void push_ready(std::uint32_t thread) noexcept
    {
        if (thread == last_) {
            is_last_ready_ = true;
            return;
        }
        threads_[thread].next = ready_;
        ready_ = thread;
    }

    std::uint32_t take_ready() noexcept
    {
        if (ready_ == none) {
            is_last_ready_ = false;
            return last_;
        }
        return std::exchange(ready_, threads_[ready_].next);
    }

    /// Visits ops of a thread until the thread must wait or ends. If the thread is `last_`, also
    /// stops as soon as another thread can continue.
    template <class Visit>
    void go_on(std::uint32_t thread, Visit& visit) noexcept
    {
        thread_state& self = threads_[thread];
        for (;; ++self.index, ++self.at) {
            if (ready_ != none && thread == last_)
                return push_ready(thread);
            if (self.at == self.from.end)
                refill(self, thread);
            op const& o = *self.at;
            unsigned const kind = mallard_replay_op_of(o.what);
            if (kind == mallard_replay_wait && !is_reached(thread, o))
                return;
            visit(thread, self.index, o);
            if (kind == mallard_replay_end)
                return end(thread);
            if (kind == mallard_replay_publish)
                publish(thread, mallard_replay_size(o.what));
            else if (kind == mallard_replay_start)
                start(o.slot, thread, self.index);
        }
    }

    std::size_t index_of(thread_state const& of) const noexcept
    {
        return static_cast<std::size_t>(&of - threads_.data());
    }
    void refill(thread_state& self, std::uint32_t thread) noexcept
    {
        if (self.from.left == 0)
            stream_.damaged("thread %u has no op `end`", thread);
        self.at = self.from.refill(stream_, memory_.ops_max());
    }

    stream const& stream_;
    windows& memory_;
    std::uint32_t last_;
    table<thread_state> threads_;
    std::uint32_t ready_ = none; ///< list of threads that can continue, without `last_`
    bool is_last_ready_ = false; ///< whether `last_` can continue
    std::size_t ended_ = 0;
    std::size_t live_ = 0;
    std::size_t live_peak_ = 0;
};

} // namespace mallard::replay
