// Pools with all their memory inside the pool object.
#include <mallard/fixed_pool.hpp>
#include <mallard/pool.hpp>
#include <mallard/source.hpp>

#include <array>
#include <cassert>

constinit mallard::fixed_pool<48, 100> messages; // a static: 100 blocks of 48 bytes

int main()
{
    constexpr mallard::pool_options shape{.block = 48, .order = mallard::reuse::lifo};
    constexpr std::size_t bytes = mallard::pool<mallard::null, shape>::bytes_for(100);
    constexpr mallard::pool_options bounded{
        .block = 48, .grow = mallard::growth::none(bytes), .order = mallard::reuse::lifo};

    alignas(16) std::array<std::byte, bytes> here;
    mallard::pool<mallard::borrowed, bounded> blocks{mallard::borrowed(here)};

    for (int i = 0; i < 100; ++i) {
        assert(messages.try_allocate() != nullptr);
        assert(blocks.try_allocate() != nullptr);
    }
    assert(messages.try_allocate() == nullptr);
}
