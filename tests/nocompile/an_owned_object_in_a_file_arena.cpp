// error: own.*(inaccessible|private)
#include <mallard/persist/file_arena.hpp>

#include <string>

void keep(mallard::file_arena& file)
{
    file.own<std::string>("no process is left to destroy it");
}
