// The example of README.md.
#include <mallard/mallard.hpp>

#include <cassert>
#include <string>
#include <vector>

struct point {
    int x, y;
};

int main()
{
    mallard::arena<> scratch; // freed all at once
    point& corner = scratch.make<point>(3, 4);

    mallard::pool<> points(sizeof(point)); // one size, freed one by one
    void* const block = points.allocate();
    points.deallocate(block);

    mallard::multipool<> memory; // any size; here as a type parameter
    std::vector<int, mallard::allocator<int, mallard::multipool<>>> numbers({1, 2, 3}, memory);

    mallard::pmr::arena request; // a std::pmr::memory_resource
    mallard::winked<std::pmr::vector<std::pmr::string>> lines(request);
    lines->emplace_back("no destructor of this will run");
    std::size_t const count = lines->size();
    request.reset(); // vector and strings are gone, the memory is kept

    assert(corner.y == 4 && numbers.size() == 3 && count == 1);
}
