// An adaptor with one allocator for small blocks and another for large blocks.
#pragma once

#include <mallard/adapt/adaptor.hpp>

namespace mallard {

/// Allocates blocks of at most `N` bytes from `Small`, and larger blocks from `Large`. `deallocate`
/// makes the same choice from the size. The choice costs one comparison, or nothing if the size is
/// a constant.
///
///     mallard::by_size<256, mallard::multipool<>, mallard::multipool<mallard::pages<>>> memory;
///
/// Wraps only allocators, not chunk sources. A chunk source may supply more bytes than requested,
/// so the size of a chunk does not determine which source supplied the chunk. When the chosen
/// allocator fails, the other one is not tried.
template <std::size_t N, block_allocator Small, block_allocator Large>
class by_size : public adaptor_of_two<by_size<N, Small, Large>, Small, Large> {
    using base = adaptor_of_two<by_size, Small, Large>;
    friend adaptor_access;

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
