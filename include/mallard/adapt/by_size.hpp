// An adaptor that has one allocator for small blocks and another for large ones.
#pragma once

#include <mallard/detail/adapt/adaptor_of_two.hpp>

namespace mallard {

/// Blocks of at most `N` bytes are from `Small`, others from `Large`. The size said at
/// `deallocate` decides too, so nothing is looked up: one comparison, and none where
/// the size is a constant.
///
///     mallard::by_size<256, mallard::multipool<>, mallard::multipool<mallard::pages<>>> memory;
///
/// For allocators alone: a chunk source may give more than was asked for, and then
/// its size no longer tells where it is from. A refusal of either is one of both.
template <std::size_t N, block_allocator Small, block_allocator Large>
class by_size : public adaptor_of_two<by_size<N, Small, Large>, Small, Large> {
    using base = adaptor_of_two<by_size, Small, Large>;
    friend base;

public:
    using base::base;

private:
    template <bool Throws>
    [[gnu::always_inline]] chunk take_one(layout l) noexcept(!Throws)
    {
        return l.bytes <= N ? take_or_null<Throws>(base::first(), l)
                            : take_or_null<Throws>(base::second(), l);
    }
    [[gnu::always_inline]] void give_one(chunk c) noexcept
    {
        if (c.bytes <= N)
            mallard::give(base::first(), c);
        else
            mallard::give(base::second(), c);
    }
};

} // namespace mallard
