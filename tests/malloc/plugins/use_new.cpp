// A plugin that uses operator new, for programs/late_runtime.c.
#include "../family.hpp"

#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace mallard::testing;

int calls = 0;

void give_up_at_third()
{
    if (++calls == 3)
        std::set_new_handler(nullptr);
}

template <class Exception, class F>
bool throws(F f)
{
    try {
        f();
    } catch (const Exception&) {
        return true;
    }
    return false;
}

} // namespace

extern "C" [[gnu::visibility("default")]] int use_new()
{
    std::vector<std::string> const text(1000, "longer than a string can hold without a block");
    auto const too_many = [] { hidden(::operator new(hidden(PTRDIFF_MAX))); };
    bool const without_handler = throws<std::bad_alloc>(too_many);
    std::set_new_handler(give_up_at_third);
    bool const with_handler = throws<std::bad_alloc>(too_many) && calls == 3;
    std::set_new_handler([] { throw std::runtime_error("mine"); });
    bool const of_handler = throws<std::runtime_error>(too_many);
    std::set_new_handler(nullptr);
    bool const none = ::operator new(hidden(SIZE_MAX), std::nothrow) == nullptr;
    std::printf("%d %d %d %d\n", without_handler, with_handler, of_handler, none);
    return !(without_handler && with_handler && of_handler && none && text.size() == 1000);
}
