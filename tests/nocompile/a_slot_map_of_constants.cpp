// error: the values of a slot map must be objects
#include <mallard/slot_map.hpp>

mallard::slot_map<const int> constants;
