// Stands in for the parts of libmallard-plan.so that are not linked into a test of its local
// allocators: the hooks of malloc, and the operators.
#include "../../src/preload/next.hpp"

#include <cstdlib>

namespace mallard::preload {

namespace {

constexpr next_functions of_libc() noexcept
{
    next_functions f{};
    f.malloc = std::malloc;
    f.free = std::free;
    f.realloc = std::realloc;
    return f;
}

} // namespace

constinit next_functions next = of_libc();

bool find_next() noexcept
{
    return true;
}

} // namespace mallard::preload
