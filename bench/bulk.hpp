// The loops of the benchmark published with the project "fixed memory pool". Several suites repeat
// that benchmark.
#pragma once

#include <bench/barrier.hpp>
#include <bench/clock.hpp>
#include <bench/table.hpp>

namespace mallard::bench {

template <class C>
void fill(C& blocks, table<void*>& slots)
{
    for (std::size_t i = 0; i < slots.size(); ++i) {
        void* const block = blocks.allocate();
        touch_byte(block, i);
        slots[i] = block;
    }
}

template <class C>
void empty(C& blocks, table<void*> const& slots)
{
    for (void* const block : slots)
        blocks.deallocate(keep(block));
}

template <class C>
void empty(C& blocks, table<void*> const& slots, table<std::uint32_t> const& in_order)
{
    for (std::uint32_t const i : in_order)
        blocks.deallocate(keep(slots[i]));
}

/// Frees the blocks from the last to the first, so that later allocations return ascending
/// addresses.
template <class C>
void build_free_list(C& blocks, table<void*>& slots)
{
    for (void*& slot : slots)
        slot = blocks.allocate();
    for (std::size_t i = slots.size(); i-- > 0;)
        blocks.deallocate(slots[i]);
}

/// Repeatedly allocates a block, writes a byte and frees the block.
template <class C>
void interleave(C& blocks, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        void* const block = blocks.allocate();
        touch_byte(block, i);
        blocks.deallocate(block);
    }
}

template <class Body>
double ns_of(Body&& body)
{
    double const from = cpu_ns();
    body();
    return cpu_ns() - from;
}

} // namespace mallard::bench
