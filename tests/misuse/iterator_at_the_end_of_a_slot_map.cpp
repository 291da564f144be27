// dies: mallard: an iterator of a slot map stands where no element is
#include <mallard/slot_map.hpp>

int main()
{
    using namespace mallard;
    slot_map<int, key32, reserved<>, slot_map_options{.checks = check::on}> numbers;
    numbers.insert(1);
    return (*numbers.end()).value;
}
