// Counts the different words of each file in a directory. Each call uses a separate arena.
#include <mallard/pmr.hpp>
#include <mallard/winked.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>

// Returns how many different words a file has.
std::size_t different_words(const std::filesystem::path& path)
{
    mallard::pmr_resource<mallard::arena<>> memory;
    mallard::winked<std::pmr::map<std::pmr::string, int>> counted(memory);
    auto& count = *counted;
    std::ifstream file(path);
    for (std::pmr::string word(&memory); file >> word;)
        ++count[word];
    return count.size();
}

// Counts the different words of each file in the given directory, or in that of the Linux headers.
int main(int arguments, char** argument)
{
    const std::filesystem::path folder = arguments > 1 ? argument[1] : "/usr/include/linux";
    std::size_t sum = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.is_regular_file())
            sum += different_words(entry.path());
    std::cout << sum << "\n";
    return sum > 0 ? 0 : 1;
}
