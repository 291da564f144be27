// Finds bugs of the callers of an allocator.
#include <mallard/debug/checked.hpp>
#include <mallard/multipool.hpp>

#include <cassert>
#include <vector>

int main()
{
    std::vector<mallard::fault_kind> found;
    {
        auto collect = [&](const mallard::fault& f) { found.push_back(f.kind); };
        mallard::checked<mallard::multipool<>> orders({"orders", collect});

        void* const block = orders.allocate({40});
        orders.deallocate(block, {32}); // wrong: 40 bytes were asked for
        orders.deallocate(block, {40}); // wrong: the block is free already

        static_cast<void>(orders.allocate({24})); // a leak: nobody will free this block
        orders.verify();                          // no byte outside a block is overwritten
    }
    using enum mallard::fault_kind;
    assert((found == std::vector{wrong_layout, double_free, leak}));
}
