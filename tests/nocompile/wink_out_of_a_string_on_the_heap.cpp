// error: winking out this type would leak
#include <mallard/pmr.hpp>
#include <mallard/winked.hpp>

#include <string>
#include <vector>

void leak(mallard::pmr::arena& scratch)
{
    mallard::winked<std::pmr::vector<std::string>> words(scratch);
}
