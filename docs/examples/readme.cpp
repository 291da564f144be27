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
    request.reset(); // vector and strings are freed, the memory is kept

    mallard::object_pool<point> all;
    auto owned = all.make(3, 4); // a box: one pointer, which destroys its point

    mallard::slot_map<point> by_key;
    mallard::key32 const key = by_key.insert({3, 4});
    by_key.erase(key);
    point* const none = by_key.get(key); // null from now on

    assert(owned->x == 3 && none == nullptr);
    assert(corner.y == 4 && numbers.size() == 3 && count == 1);
}
