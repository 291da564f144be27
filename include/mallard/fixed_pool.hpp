// A pool whose blocks are inside the pool object.
#pragma once

#include <mallard/pool.hpp>
#include <mallard/source.hpp>

namespace mallard {

/// Computes the type of a `fixed_pool` and the size of its buffer.
template <std::size_t Block, std::size_t Count, reuse Order, check Checks>
struct fixed_pool_of {
    /// The options that decide the size of a slot.
    static constexpr pool_options shape{.block = Block, .order = Order, .checks = Checks};
    /// The size of the buffer in bytes.
    static constexpr std::size_t bytes = pool<null, shape>::bytes_for(Count);
    /// The options of the pool. Its only chunk request is for the whole buffer.
    static constexpr pool_options options{
        .block = Block, .grow = growth::none(bytes), .order = Order, .checks = Checks};
    using type = pool<buffer<bytes>, options>; ///< the pool
};

/// A pool with room for `Count` blocks of `Block` bytes inside the object itself. The pool never
/// uses the heap. A static fixed_pool can be constant-initialised. Because of padding for
/// alignment, there may be room for one block more than `Count`. An allocation fails if its layout
/// does not fit a block, because the buffer has room only for blocks.
///
///     constinit mallard::fixed_pool<48, 100> timers;
template <std::size_t Block, std::size_t Count, reuse Order = reuse::lifo,
          check Checks = check::off>
using fixed_pool = typename fixed_pool_of<Block, Count, Order, Checks>::type;

} // namespace mallard
