// dies: mallard: read of a slot map iterator that points to no element
#include <mallard/slot_map.hpp>

int main()
{
    using namespace mallard;
    slot_map<int, key32, reserved<>, slot_map_options{.checks = check::on}> numbers;
    numbers.insert(1);
    return (*numbers.end()).value;
}
