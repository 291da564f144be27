// dies: mallard: double free of ADDRESS in a pool
#include <mallard/object_pool.hpp>

int main()
{
    using namespace mallard;
    object_pool<int, default_heap, object_pool_options{.checks = check::on}> numbers;
    int* const number = numbers.make(1).leak();
    numbers.destroy(number);
    numbers.destroy(number);
}
