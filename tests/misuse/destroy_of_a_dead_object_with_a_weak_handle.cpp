// dies: mallard: double free of ADDRESS in a pool
#include <mallard/object_pool.hpp>

int main()
{
    using namespace mallard;
    constexpr object_pool_options watched{.counts = counts::local, .checks = check::on};
    object_pool<int, default_heap, watched> numbers;
    auto one = numbers.make_rc(1);
    mallard::weak const watching = one;
    int* const dead = one.get();
    one.reset();
    numbers.destroy(dead);
}
