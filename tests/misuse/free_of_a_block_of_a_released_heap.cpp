// dies: mallard: free of ADDRESS, which is not a block of malloc
#include <mallard/heap.hpp>

int main()
{
    mallard::heap h;
    void* const block = h.allocate(100);
    h.release();
    mallard_free(block);
}
