// A structure whose destructor never runs.
#include <mallard/pmr.hpp>
#include <mallard/winked.hpp>

#include <cassert>
#include <map>
#include <string>
#include <vector>

using arena = mallard::pmr_resource<mallard::arena<>>;
using word_index = std::pmr::map<std::pmr::string, std::pmr::vector<int>>;

// Winking out a structure does not compile if memory would leak. Here a vector of std::string would
// leak, because the characters are on the heap.
static_assert(mallard::is_winkable<word_index, arena>);
static_assert(!mallard::is_winkable<std::pmr::vector<std::string>, arena>);

int main()
{
    arena scratch;
    for (int document = 0; document < 3; ++document) {
        mallard::winked<word_index> where(scratch); // all nodes and strings are in the arena
        (*where)["mallard"].push_back(document);
        assert(where->size() == 1);
        scratch.reset(); // frees all of it, in constant time
    }
}
