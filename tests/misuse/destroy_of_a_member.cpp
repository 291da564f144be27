// dies: mallard: free of ADDRESS, which is inside a block of a pool
#include <mallard/object_pool.hpp>

int main()
{
    using namespace mallard;
    struct pair {
        int first, second;
    };
    object_pool<pair, default_heap, object_pool_options{.checks = check::on}> pairs;
    auto const one = pairs.make(1, 2);
    pairs.destroy(reinterpret_cast<pair*>(&one->second));
}
