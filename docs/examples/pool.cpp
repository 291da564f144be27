// Blocks of one size.
#include <mallard/pool.hpp>

#include <array>
#include <cassert>

struct order {
    long id, price, amount;
};

int main()
{
    {
        mallard::pool<> orders(sizeof(order), alignof(order)); // the size is chosen at run time
        order* const first = ::new (orders.allocate()) order{1, 995, 10};
        orders.deallocate(first);
        assert(orders.block_bytes() == sizeof(order));
    }
    {
        mallard::pool<mallard::default_heap, mallard::pool_options{.block = sizeof(order)}> orders;
        orders.deallocate(orders.allocate());
    }
    {
        constexpr mallard::pool_options stack_like{.block = 32, .order = mallard::reuse::lifo};
        mallard::pool<mallard::default_heap, stack_like> recent;
        void* const last_freed = recent.allocate();
        recent.deallocate(last_freed);
        void* const next = recent.allocate();
        assert(next == last_freed);
        recent.deallocate(next);
    }
    {
        mallard::pool<> orders(sizeof(order));
        std::array<void*, 100> many;
        orders.allocate_batch(many); // allocates all blocks, or throws and allocates none
        orders.deallocate_batch(std::span(many).first(60));

        std::size_t alive = 0;
        orders.for_each([&](void*) { ++alive; }); // visits in address order
        assert(alive == 40);

        orders.reset(); // frees all blocks
        orders.trim();  // returns idle memory
        assert(orders.stats().chunks == 0);
    }
}
