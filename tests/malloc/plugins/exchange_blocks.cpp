// A plugin for programs/deep_plugin.cpp. It exchanges blocks with the program.
#include "../family.hpp"

extern "C" [[gnu::visibility("default")]] void* exchange_blocks(void* block)
{
    std::free(block);
    return std::malloc(100);
}
