// error: the next process has its vtable elsewhere
#include <mallard/persist/file_arena.hpp>

struct shape {
    virtual ~shape() = default;
};

shape* first(mallard::file_arena& file)
{
    return file.root<shape>();
}
