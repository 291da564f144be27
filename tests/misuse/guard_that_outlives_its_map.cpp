// dies: mallard: a shared slot map is destroyed while a guard holds ADDRESS
#include <mallard/shared_slot_map.hpp>

int main()
{
    using namespace mallard;
    using map = shared_slot_map<int, key64, shared_slot_map_options{.checks = check::on}>;
    map::guard late;
    map numbers;
    key64 const k = numbers.insert(1);
    late = numbers.get(k);
    numbers.remove(k);
}
