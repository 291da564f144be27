// The first program of docs/start/cpp.md: counts words with the heap, or with an arena.
#include <mallard/pmr.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory_resource>
#include <string>
#include <string_view>

// Answers one request: how many different words the text has. All memory comes from `memory`.
std::size_t different_words(std::string_view text, std::pmr::memory_resource* memory)
{
    std::pmr::map<std::pmr::string, int> count(memory);
    while (!text.empty()) {
        std::size_t const end = std::min(text.find(' '), text.size());
        ++count[std::pmr::string(text.substr(0, end), memory)];
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return count.size();
}

int main(int arguments, char** argument)
{
    bool const heap = arguments > 1 && std::string_view(argument[1]) == "heap";
    std::string text;
    for (int word = 0; word < 1000; ++word)
        text += "a-word-of-some-length-" + std::to_string(word * 7 % 500) + ' ';

    mallard::pmr::arena scratch; // takes no memory yet
    std::size_t sum = 0;
    for (int request = 0; request < 2000; ++request) {
        sum += different_words(text, heap ? std::pmr::new_delete_resource() : &scratch);
        scratch.reset(); // frees all memory of the request, and keeps it for the next one
    }
    std::printf("%zu\n", sum);
    return sum == 1'000'000 ? 0 : 1;
}
