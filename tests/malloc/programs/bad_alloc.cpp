// Tests every form of operator new when memory is exhausted: exceptions, null results and calls of
// the new_handler. The same program is linked with each kind of C++ runtime.
#include "../family.hpp"
#include "check.hpp"

#include <cstring>
#include <exception>
#include <new>

namespace {

using namespace mallard::testing;

constexpr std::align_val_t line{64};
constexpr std::size_t too_many = PTRDIFF_MAX;
int asked = 0;

using form = void* (*)(std::size_t);
constexpr form throwing[] = {
    [](std::size_t n) { return ::operator new(n); },
    [](std::size_t n) { return ::operator new[](n); },
    [](std::size_t n) { return ::operator new(n, line); },
    [](std::size_t n) { return ::operator new[](n, line); },
    [](std::size_t n) -> void* { return hidden(new char[n]); },
};
constexpr form nothrow[] = {
    [](std::size_t n) { return ::operator new(n, std::nothrow); },
    [](std::size_t n) { return ::operator new[](n, std::nothrow); },
    [](std::size_t n) { return ::operator new(n, line, std::nothrow); },
    [](std::size_t n) { return ::operator new[](n, line, std::nothrow); },
};

template <class Exception>
bool throws(form f)
{
    try {
        hidden(f(hidden(too_many)));
    } catch (const Exception&) {
        return true;
    }
    return false;
}

/// A new_handler that removes itself at its second call, so that operator new then throws.
void ask_twice()
{
    if (++asked % 2 == 0)
        std::set_new_handler(nullptr);
}
void ask_and_throw()
{
    ++asked;
    throw 7;
}

} // namespace

/// With the argument `calm`, no handler throws inside a nothrow form of operator new.
int main(int count, char** arguments)
{
    bool const is_calm = count > 1 && std::strcmp(arguments[1], "calm") == 0;
    for (form const f : throwing) {
        check(throws<std::bad_alloc>(f), "std::bad_alloc is thrown");
        check(throws<std::exception>(f), "it is a std::exception");
    }
    for (form const f : nothrow)
        check(f(hidden(too_many)) == nullptr, "nothrow returns null");
    check(asked == 0, "no handler was set");

    for (form const f : throwing) {
        std::set_new_handler(ask_twice);
        check(throws<std::bad_alloc>(f), "std::bad_alloc is thrown after the handler");
    }
    for (form const f : nothrow) {
        std::set_new_handler(ask_twice);
        check(f(hidden(too_many)) == nullptr, "nothrow returns null after the handler");
    }
    check(asked == 2 * 9, "the handler is asked until there is none");

    std::set_new_handler(ask_and_throw);
    for (form const f : throwing)
        check(throws<int>(f), "what the handler throws is thrown");
    for (form const f : nothrow)
        check(is_calm || f(hidden(too_many)) == nullptr,
              "nothrow returns null if the handler throws");
    std::set_new_handler(nullptr);
    delete[] hidden(new char[1000]);
    return 0;
}
