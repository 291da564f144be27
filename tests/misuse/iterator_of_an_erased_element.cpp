// dies: mallard: read of a slot map iterator that points to no element
#include <mallard/slot_map.hpp>

int main()
{
    using namespace mallard;
    slot_map<int, key32, fixed<10>, slot_map_options{.checks = check::on}> numbers;
    key32 const k = numbers.insert(1);
    auto const here = numbers.begin();
    numbers.erase(k);
    return here->value;
}
