// dies: mallard: destroy of ADDRESS, to which other handles refer
#include <mallard/object_pool.hpp>

int main()
{
    using namespace mallard;
    constexpr object_pool_options watched{.counts = counts::local, .checks = check::on};
    object_pool<int, default_heap, watched> numbers;
    auto const one = numbers.make_rc(1);
    auto const two = one;
    numbers.destroy(one.get());
}
