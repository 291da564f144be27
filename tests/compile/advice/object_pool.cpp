// In render_document (render.cpp:40)
#include <mallard/object_pool.hpp>

struct object { // the type that is made there
    long id;
    double value;
};

// One for the program: one that each call makes anew saves much less.
class objects {
public:
    // Returns a box, which destroys the object at its end.
    auto render_document(long id) { return pool_.make(id, 0.0); }

private:
    mallard::object_pool<object> pool_; // outlives its boxes
};
