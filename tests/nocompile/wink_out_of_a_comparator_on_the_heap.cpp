// error: winking out this type would leak
#include <mallard/pmr.hpp>
#include <mallard/winked.hpp>

#include <functional>
#include <set>

void leak(mallard::pmr::arena& scratch)
{
    mallard::winked<std::pmr::set<int, std::function<bool(int, int)>>> ordered(scratch);
}
