// A source inside which a thread stands until it is let go.
#pragma once

#include "sources.hpp"
#include "threads.hpp"

#include <atomic>

namespace mallard::testing {

/// Any thread may call it at any time, so that nobody waits for who stands inside.
///
///     source.hold_next();          // from now on, the first who takes
///     source.entered().wait();     // is inside
///     source.let_go();             // and gets what it asked for
class gated_source {
public:
    static constexpr bool any_thread = true;

    void hold_next() { held_.store(true); }
    gate& entered() { return entered_; }
    void let_go() { go_on_.open(); }
    void refuse() { refuses_.store(true); }

    chunk try_take(layout l) noexcept
    {
        if (held_.exchange(false)) {
            entered_.open();
            go_on_.wait();
        }
        std::lock_guard const alone(lock_);
        return refuses_ ? chunk{} : heap_.try_take(l);
    }
    void give(chunk c) noexcept
    {
        std::lock_guard const alone(lock_);
        heap_.give(c);
    }

private:
    std::atomic<bool> held_ = false;
    std::atomic<bool> refuses_ = false;
    gate entered_, go_on_;
    std::mutex lock_;
    counting_source heap_;
};

} // namespace mallard::testing
