// error: acquired\(T&\) and released\(T&\)
#include <mallard/object_pool.hpp>

struct hooks {
    void aquired(int&) {}
};
using namespace mallard;
object_pool<int, default_heap, object_pool_options{}, hooks> numbers{hooks()};
