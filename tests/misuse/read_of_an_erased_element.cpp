// asan: use-after-poison
#include <mallard/slot_map.hpp>

int main()
{
    mallard::slot_map<int> numbers;
    mallard::key32 const k = numbers.insert(1);
    volatile int const& erased = *numbers.get(k);
    numbers.erase(k);
    return erased;
}
