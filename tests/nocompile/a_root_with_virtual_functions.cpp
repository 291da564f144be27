// error: no virtual functions: the vtable has another address in the next process
#include <mallard/persist/file_arena.hpp>

struct shape {
    virtual ~shape() = default;
};

shape* first(mallard::file_arena& file)
{
    return file.root<shape>();
}
