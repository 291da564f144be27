// error: mallard::arena<> ?\*
#include <mallard/arena.hpp>
#include <memory_resource>
#include <vector>

mallard::arena<> scratch;
std::pmr::vector<int> numbers(&scratch); // docs/guide/pmr.md quotes the errors
