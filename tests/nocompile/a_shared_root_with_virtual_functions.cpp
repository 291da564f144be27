// error: no virtual functions: the vtable has another address in each process
#include <mallard/persist/shared_memory.hpp>

struct shape {
    virtual ~shape() = default;
};

shape* find(mallard::shared_memory& segment)
{
    return segment.root<shape>();
}
