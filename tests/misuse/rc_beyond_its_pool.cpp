// asan: heap-use-after-free
#include <mallard/object_pool.hpp>

int main()
{
    mallard::rc<int> number;
    mallard::rc_pool<int> numbers;
    number = numbers.make_rc(1);
}
