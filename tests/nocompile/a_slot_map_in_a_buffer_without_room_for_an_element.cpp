// error: source_of_bytes<4096, [0-9]+>
#include <mallard/slot_map.hpp>

mallard::slot_map<long, mallard::key32, mallard::buffer<4096>> numbers;
