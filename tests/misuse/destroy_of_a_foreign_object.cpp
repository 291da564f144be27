// dies: mallard: free of ADDRESS, which is not a block of this pool
#include <mallard/object_pool.hpp>

int main()
{
    using namespace mallard;
    object_pool<int, default_heap, object_pool_options{.checks = check::on}> numbers;
    numbers.make(1).reset();
    int number = 2;
    numbers.destroy(&number);
}
