#include "walk.hpp"

namespace mallard::replay {

void walk::start(std::uint32_t thread, std::uint32_t by, std::uint64_t index) noexcept
{
    if (thread >= threads_.count() || threads_[thread].is_started)
        stream_.damaged("op %ju of thread %u starts thread %u, which %s", std::uintmax_t{index}, by,
                        thread, thread >= threads_.count() ? "does not exist" : "was started");
    thread_state& t = threads_[thread];
    t.is_started = true;
    t.from = reader::of(stream_.threads()[thread], memory_.take());
    t.at = t.from.refill(stream_, memory_.ops_max());
    push_ready(thread);
    if (++live_ > live_peak_)
        live_peak_ = live_;
}

void walk::end(std::uint32_t thread) noexcept
{
    thread_state& self = threads_[thread];
    if (self.index + 1 != stream_.threads()[thread].ops)
        stream_.damaged("thread %u has ops after its `end`", thread);
    memory_.give(self.from.into);
    ++ended_;
    --live_;
}

void walk::publish(std::uint32_t thread, std::uint64_t position) noexcept
{
    thread_state& self = threads_[thread];
    if (position <= self.position)
        stream_.damaged("op %ju of thread %u publishes position %ju after position %ju",
                        std::uintmax_t{self.index}, thread, std::uintmax_t{position},
                        std::uintmax_t{self.position});
    self.position = position;
    for (std::uint32_t* link = &self.first_waiting; *link != none;) {
        std::uint32_t const other = *link;
        if (threads_[other].wanted > position) {
            link = &threads_[other].next;
            continue;
        }
        *link = threads_[other].next;
        threads_[other].waits_for = none;
        push_ready(other);
    }
}

bool walk::is_reached(std::uint32_t thread, op const& o) noexcept
{
    thread_state& self = threads_[thread];
    if (o.slot >= threads_.count() || o.slot == thread)
        stream_.damaged("op %ju of thread %u waits for thread %u", std::uintmax_t{self.index},
                        thread, o.slot);
    thread_state& other = threads_[o.slot];
    self.wanted = mallard_replay_size(o.what);
    if (other.position >= self.wanted)
        return true;
    self.waits_for = o.slot;
    self.next = other.first_waiting;
    other.first_waiting = thread;
    return false;
}

void walk::report_deadlock() const noexcept
{
    for (thread_state const& t : threads_) {
        if (!t.is_started)
            stream_.damaged("no op starts thread %zu", index_of(t));
        if (t.waits_for != none)
            stream_.damaged("thread %zu waits for position %ju of thread %u, which never comes",
                            index_of(t), std::uintmax_t{t.wanted}, t.waits_for);
    }
    stream_.damaged("its threads wait for each other");
}

} // namespace mallard::replay
