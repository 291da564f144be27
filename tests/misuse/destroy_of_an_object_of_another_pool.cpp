// dies: mallard: free of ADDRESS, which is not a block of this pool
#include <mallard/object_pool.hpp>

int main()
{
    using namespace mallard;
    using pool = object_pool<int, default_heap, object_pool_options{.checks = check::on}>;
    pool numbers, others;
    numbers.destroy(others.make(1).leak());
}
