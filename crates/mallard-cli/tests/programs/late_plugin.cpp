// The plugin: all blocks of a call are freed when it returns.
#include <map>
#include <string>

extern "C" __attribute__((noinline)) long work(int i)
{
    std::map<int, std::string> words;
    for (int k = 0; k < 20; ++k)
        words[k] = "a text of the plugin, with a length of " + std::to_string(k * i);
    return static_cast<long>(words.size());
}
