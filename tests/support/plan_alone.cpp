// Stands for the parts of libmallard-plan.so that a program which links its local allocators leaves
// out: the hooks of malloc, and the operators.
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
