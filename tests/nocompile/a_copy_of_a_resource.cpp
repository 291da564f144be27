// error: deleted
#include <mallard/pmr.hpp>

mallard::pmr::arena first;
mallard::pmr::arena second(first);
