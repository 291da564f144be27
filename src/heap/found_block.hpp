// Looks up the block at an address, for functions such as free whose argument may be an address
// without a block.
#pragma once

#include "reservation.hpp"

namespace mallard::engine {

/// Where a block in use was found.
struct found_block {
    reservation* in; ///< the block's reservation; null if the block has a dedicated mapping
    std::size_t slice;
    entry what; ///< the entry of the slice
    slab* of;   ///< the slab or span of the block; null if the block is large or sampled

    bool is_span() const noexcept { return of != nullptr && of->index >= span_class_first; }
    bool is_of_heap() const noexcept { return is_heaps(what); }
    /// Returns the record of the block's slab, or of the large or sampled block.
    slab& record() const noexcept { return of != nullptr ? *of : in->slabs[slice]; }
};

/// Finds the block at `p`. Stops the process if `p` is inside a block, is a free block, or is any
/// other address in a reservation. The error message names `call`, the function that the program
/// called. An address outside all reservations is not checked. For such an address, the result
/// describes a block with a dedicated mapping.
found_block find_block(const void* p, const char* call) noexcept;

} // namespace mallard::engine
