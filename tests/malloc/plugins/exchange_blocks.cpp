// A plugin for programs/deep_plugin.cpp. The plugin and the program free each other's blocks.
#include "../family.hpp"

extern "C" [[gnu::visibility("default")]] void* exchange_blocks(void* block)
{
    std::free(block);
    return std::malloc(100);
}
