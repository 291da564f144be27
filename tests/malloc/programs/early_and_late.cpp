// Allocates before all constructors, and frees after all destructors.
#include "../family.hpp"
#include "check.hpp"

#include <string>
#include <vector>

namespace {

using namespace mallard::testing;

void* early[8];

[[gnu::constructor(101)]] void before_all()
{
    for (std::size_t i = 0, bytes = 1; i < 8; ++i, bytes *= 8) {
        early[i] = std::malloc(bytes);
        fill(early[i], bytes, 1);
        std::free(hidden(std::calloc(1, bytes)));
    }
}
[[gnu::destructor(101)]] void after_all()
{
    for (std::size_t i = 0, bytes = 1; i < 8; ++i, bytes *= 8) {
        check(holds(early[i], bytes, 1), "a block lives as long as the program");
        std::free(early[i]);
        std::free(hidden(std::malloc(bytes)));
    }
}

void at_exit()
{
    std::free(hidden(std::realloc(hidden(std::malloc(100)), 300'000)));
}

std::vector<std::string> const text(1000, "longer than a string can hold without a block");
thread_local std::vector<int> const numbers(1000);

} // namespace

int main()
{
    check(numbers.size() + text.size() == 2000, "both are there");
    std::atexit(at_exit);
    at_exit();
}
