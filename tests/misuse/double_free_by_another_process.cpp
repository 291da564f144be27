// dies: mallard: double free of ADDRESS in a pool
#include <mallard/persist/segment_pool.hpp>

#include <sys/wait.h>
#include <unistd.h>

int main()
{
    auto segment = mallard::shared_memory::anonymous(1 << 16);
    auto* const blocks = ::new (segment.allocate(mallard::layout_of<mallard::segment_pool<48>>()))
        mallard::segment_pool<48>(segment, 10);
    void* const block = blocks->allocate();
    if (::fork() == 0) {
        blocks->deallocate(block);
        ::_exit(0);
    }
    ::wait(nullptr);
    blocks->deallocate(block);
}
