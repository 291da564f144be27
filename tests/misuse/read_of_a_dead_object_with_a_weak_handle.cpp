// asan: use-after-poison
#include <mallard/object_pool.hpp>

int main()
{
    mallard::rc_pool<int> numbers;
    auto one = numbers.make_rc(1);
    mallard::weak const watching = one;
    int const& dead = *one;
    one.reset();
    return dead;
}
