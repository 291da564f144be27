// dies: mallard: double free of ADDRESS in a pool
// asan: use-after-poison
#include <mallard/object_pool.hpp>

int main()
{
    using namespace mallard;
    constexpr object_pool_options watched{.counts = counts::local, .checks = check::on};
    object_pool<int, default_heap, watched> numbers;
    auto number = numbers.make_rc(1);
    numbers.destroy(number.get());
    auto const other = numbers.make_rc(2); // in the slot of the destroyed object
    numbers.destroy(other.get());
    number.reset();
}
