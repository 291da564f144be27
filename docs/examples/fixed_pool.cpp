// A pool that never takes memory from anyone.
#include <mallard/pool.hpp>

#include <cassert>

constexpr mallard::pool_options shape{.block = 48, .order = mallard::reuse::lifo};
constexpr std::size_t bytes = mallard::pool<mallard::null, shape>::bytes_for(100);
constexpr mallard::pool_options in_place{
    .block = 48, .grow = mallard::growth::none(bytes), .order = mallard::reuse::lifo};

constinit mallard::pool<mallard::buffer<bytes>, in_place> messages; // a static, no heap at all

int main()
{
    for (int i = 0; i < 100; ++i)
        assert(messages.try_allocate() != nullptr);
    messages.release();
}
