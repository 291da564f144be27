// error: a pointer leads elsewhere in each process
#include <mallard/persist/shared_memory.hpp>

int** find(mallard::shared_memory& segment)
{
    return segment.root<int*>();
}
