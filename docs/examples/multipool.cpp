// Blocks of many sizes, freed in any order.
#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>

#include <cassert>
#include <map>
#include <string>

int main()
{
    {
        mallard::multipool<> memory;
        void* const block = memory.allocate({33, 1}); // a block of 40 bytes
        memory.deallocate(block, {33, 1});            // the size picks the pool
    }
    {
        // Reuses freed blocks while the multipool exists. One call to the arena then frees all
        // blocks.
        using resource = mallard::multipool<mallard::arena<>>;
        using string =
            std::basic_string<char, std::char_traits<char>, mallard::allocator<char, resource>>;
        using entry = std::pair<const string, int>;

        resource memory;
        std::map<string, int, std::less<>, mallard::allocator<entry, resource>> ages(memory);
        ages[string("a name too long for a string to hold in itself", memory)] = 7;
        ages.clear();
        assert(memory.stats().blocks_live == 0);
    }
}
