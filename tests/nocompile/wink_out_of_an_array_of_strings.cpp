// error: winking out this type would leak
#include <mallard/pmr.hpp>
#include <mallard/winked.hpp>

#include <array>
#include <string>
#include <vector>

// An array does not pass its allocator to its elements, so the strings would be on the heap.
void leak(mallard::pmr::arena& scratch)
{
    mallard::winked<std::pmr::vector<std::array<std::pmr::string, 2>>> words(scratch);
}
