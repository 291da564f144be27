// dies: mallard: double free of ADDRESS in a pool
#include <mallard/object_pool.hpp>

int main()
{
    using namespace mallard;
    object_pool<int, default_heap, object_pool_options{.checks = check::on}> numbers;
    auto const one = numbers.make(1);
    auto const two = numbers.adopt(one.get());
}
