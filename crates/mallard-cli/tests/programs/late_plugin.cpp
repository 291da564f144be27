// The plugin of late_plugin.c. All blocks of a call of `work` are freed when the call returns.
#include <map>
#include <string>

extern "C" __attribute__((noinline)) long work(int i)
{
    std::map<int, std::string> words;
    for (int k = 0; k < 20; ++k)
        words[k] = "a text of the plugin, with a length of " + std::to_string(k * i);
    return static_cast<long>(words.size());
}
