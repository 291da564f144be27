// What do the callers of this allocator do wrong?
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
        orders.deallocate(block, {32}); // 40 were asked for
        orders.deallocate(block, {40}); // and it is free already

        static_cast<void>(orders.allocate({24})); // nobody will free it
        orders.verify();                          // nothing is overwritten
    }
    using enum mallard::fault_kind;
    assert((found == std::vector{wrong_layout, double_free, leak}));
}
