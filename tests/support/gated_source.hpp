// A source that can hold a thread inside a call until the test releases the thread.
#pragma once

#include "sources.hpp"
#include "threads.hpp"

#include <atomic>

namespace mallard::testing {

/// A source that any thread may call at any time. A held thread does not block other threads.
///
///     source.hold_next();          // the next thread that takes a chunk is held
///     source.entered().wait();     // now the thread is inside `try_take`
///     source.let_go();             // the thread continues and gets its chunk
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
