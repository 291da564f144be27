// valgrind: Invalid read of size 4
#include <mallard/slot_map.hpp>

int main()
{
    using namespace mallard;
    slot_map<int, key32, reserved<>, slot_map_options{.checks = check::on}> numbers;
    key32 const k = numbers.insert(1);
    volatile int const& erased = *numbers.get(k);
    numbers.erase(k);
    return erased;
}
