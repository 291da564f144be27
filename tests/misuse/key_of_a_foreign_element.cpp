// dies: mallard: key_of ADDRESS, which is not an element of this slot map
#include <mallard/slot_map.hpp>

int main()
{
    using namespace mallard;
    slot_map<int, key32, reserved<>, slot_map_options{.checks = check::on}> numbers;
    numbers.insert(1);
    int const other = 1;
    static_cast<void>(numbers.key_of(other));
}
