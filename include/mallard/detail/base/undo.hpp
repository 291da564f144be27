// A scope guard, which runs an action at the end of a scope unless the action was cancelled.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

namespace mallard {

/// Calls `f` at the end of the scope, unless `keep` was called before. Use it to undo the first
/// half of an operation when the second half throws or fails. `f` must not throw.
///
///     void* const block = pool.allocate();
///     undo unless_made([&] { pool.deallocate(block); });
///     T* const object = ::new (block) T(7);
///     unless_made.keep();
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
