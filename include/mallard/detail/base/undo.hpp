// What is done again backwards when it is not finished.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

namespace mallard {

/// Calls `f` at its end, unless `keep` was called: for what an exception, or a
/// refusal half way, must not leave behind. `f` does not throw.
template <class F>
class undo {
public:
    explicit undo(F f) noexcept : f_(f) {}
    undo(const undo&) = delete;
    undo& operator=(const undo&) = delete;
    ~undo()
    {
        if (armed_)
            f_();
    }
    void keep() noexcept { armed_ = false; }

private:
    F f_;
    bool armed_ = true;
};

} // namespace mallard
