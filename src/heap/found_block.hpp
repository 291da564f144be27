// Looks up what lies at an address, for calls that cannot assume that the address is a block.
#pragma once

#include "reservation.hpp"

namespace mallard::engine {

/// A block in use.
struct found_block {
    reservation* in; ///< where the block is; null: the block has a mapping of its own
    std::size_t slice;
    entry what; ///< the entry of the slice
    slab* of;   ///< the slab or span of the block; null: the block is large or sampled

    bool is_span() const noexcept { return of != nullptr && of->index >= span_class_first; }
    bool is_of_heap() const noexcept { return is_heaps(what); }
    /// The record of the slab, or of the large or sampled block.
    slab& record() const noexcept { return of != nullptr ? *of : in->slabs[slice]; }
};

/// Finds the block at `p`. Stops the process if `p` is inside a block, is a free block, or is any
/// other address in a reservation. The message names `call`, the function that the program called.
/// An address outside all reservations is not checked: the result says that a block with a mapping
/// of its own is there.
found_block find_block(const void* p, const char* call) noexcept;

} // namespace mallard::engine
