// An adaptor that asks a second one when the first refuses.
#pragma once

#include <mallard/detail/adapt/adaptor_of_two.hpp>

namespace mallard {

/// Takes from `First` while that has something, and then from `Second`. What is
/// given back goes to the one it is from, which `First` knows by the address: in
/// constant time a `buffer` or `borrowed`, in O(log chunks) a pool or multipool, in
/// O(chunks) an arena.
///
///     using stack_first = mallard::fallback<mallard::buffer<4096>, mallard::default_heap>;
///     mallard::multipool<stack_first> memory; // the heap when 4 KiB are used up
///
///     mallard::fallback<mallard::fixed_pool<64, 100>, mallard::multipool<>> nodes;
///
/// Throws what `Second` throws. One thread at a time, like both.
template <source First, source Second>
    requires owning<First>
class fallback : public adaptor_of_two<fallback<First, Second>, First, Second> {
    using base = adaptor_of_two<fallback, First, Second>;
    friend base;

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
