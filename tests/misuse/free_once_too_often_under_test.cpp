// dies: mallard: 1 block freed too often when no allocation failed
#include <mallard/arena.hpp>
#include <mallard/debug/exception_test.hpp>

int main()
{
    // An arena ignores frees of single blocks.
    auto const arenas = [] { return mallard::arena<>(); };
    mallard::for_each_failure(arenas, [](auto& memory) {
        void* const block = memory.allocate({48, 16});
        memory.deallocate(block, {48, 16});
        memory.deallocate(block, {48, 16});
    });
}
