// A plugin that allocates, for programs/many_plugins.c.
#include "../family.hpp"

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace mallard::testing;

std::vector<std::string> const text(100, "longer than a string can hold without a block");

} // namespace

extern "C" [[gnu::visibility("default")]] void* use_plugin(void* block)
{
    std::free(block);
    void* mine = nullptr;
    std::thread([&] {
        auto const many = std::make_unique<char[]>(hidden(100'000));
        mine = std::malloc(text.size());
    }).join();
    return mine;
}
