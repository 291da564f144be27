// dies: mallard: key_of ADDRESS, which is not an element of this slot map
#include <mallard/slot_map.hpp>

int main()
{
    using namespace mallard;
    slot_map<int, key32, default_heap, slot_map_options{.checks = check::on}> numbers;
    key32 const k = numbers.insert(1);
    int const& erased = *numbers.get(k);
    numbers.erase(k);
    static_cast<void>(numbers.key_of(erased));
}
