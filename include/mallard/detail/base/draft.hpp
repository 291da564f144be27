// A block in the making.
#pragma once

#include <mallard/detail/base/bits.hpp>

#include <utility>

namespace mallard {

/// Is given back unless it is kept: what is to stand in it, or to follow it, may
/// throw.
///
///     draft block(a, layout_of<T>());
///     T* const object = ::new (block.get()) T(7);
///     block.keep();
template <class A>
class draft {
public:
    draft(A& from, layout l) : draft(from, l, from.allocate(l)) {}
    draft(A& from, layout l, void* block) noexcept : from_(from), layout_(l), block_(block) {}
    draft(const draft&) = delete;
    draft& operator=(const draft&) = delete;
    ~draft()
    {
        if (block_ != nullptr)
            from_.deallocate(block_, layout_);
    }

    void* get() const noexcept { return block_; }
    void* keep() noexcept { return std::exchange(block_, nullptr); }

private:
    A& from_;
    layout layout_;
    void* block_;
};

} // namespace mallard
