// An adaptor that uses a second allocator when the first one is exhausted.
#pragma once

#include <mallard/adapt/adaptor.hpp>

namespace mallard {

/// Allocates from `First`, and from `Second` when `First` is exhausted. A free calls `First::owns`
/// with the address to find which of the two allocated the block. This search takes constant time
/// for `buffer` and `borrowed`, O(log chunks) for a pool or multipool, and O(chunks) for an arena.
///
///     using stack_first = mallard::fallback<mallard::buffer<4096>, mallard::default_heap>;
///     mallard::multipool<stack_first> memory; // uses the heap after 4 KiB
///
///     mallard::fallback<mallard::fixed_pool<64, 100>, mallard::multipool<>> nodes;
///
/// Throws what `Second` throws. One thread at a time may use this object.
template <source First, source Second>
    requires owning<First>
class fallback : public adaptor_of_two<fallback<First, Second>, First, Second> {
    using base = adaptor_of_two<fallback, First, Second>;
    friend adaptor_access;

public:
    using base::base;

private:
    template <bool Throws>
    [[gnu::always_inline]] chunk take_one(layout l) noexcept(!Throws)
    {
        chunk const taken = mallard::try_take(base::first(), l);
        return taken.data != nullptr ? taken : take_or_null<Throws>(base::second(), l);
    }
    [[gnu::always_inline]] void give_one(chunk c) noexcept
    {
        if (base::first().owns(c.data))
            mallard::give(base::first(), c);
        else
            mallard::give(base::second(), c);
    }
};

} // namespace mallard
