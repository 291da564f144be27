// error: the values of a slot map are objects
#include <mallard/slot_map.hpp>

mallard::slot_map<const int> constants;
