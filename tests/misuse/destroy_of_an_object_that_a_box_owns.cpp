// dies: mallard: double free of ADDRESS in a pool
#include <mallard/object_pool.hpp>

int main()
{
    using namespace mallard;
    object_pool<int, default_heap, object_pool_options{.checks = check::on}> numbers;
    auto const number = numbers.make(1);
    numbers.destroy(number.get());
}
