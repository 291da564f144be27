// error: no pointer: each process has the object at another address
#include <mallard/persist/shared_memory.hpp>

int** find(mallard::shared_memory& segment)
{
    return segment.root<int*>();
}
