// error: the values of a keyed pool are objects
#include <mallard/slot_map.hpp>

mallard::slot_map<const int> constants;
