// Uses a heap of the linked malloc, and frees its blocks with `free`.
#include <mallard/heap.hpp>

#include <cstdlib>

int main()
{
    mallard::heap h;
    void* const block = h.allocate(100);
    bool const is_its = h.owns(block);
    std::free(block);
    return is_its && h.stats().blocks_live == 0 ? 0 : 1;
}
