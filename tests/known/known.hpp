// Helpers of the programs in this directory: their arguments, the text that they read, and a
// checksum of their results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace known {

/// Returns the number of rounds of a program: the first argument, or else `usual`. Stops the
/// program if the argument is not a number.
inline int rounds(int count, char** arguments, int usual)
{
    if (count < 2)
        return usual;
    char* end = nullptr;
    long const wanted = std::strtol(arguments[1], &end, 10);
    if (*end == '\0' && wanted > 0 && wanted < 1'000'000)
        return static_cast<int>(wanted);
    std::fprintf(stderr, "%s: %s is no number of rounds\n  nothing was computed\n  help: %s %d\n",
                 arguments[0], arguments[1], arguments[0], usual);
    std::exit(2);
}

/// Returns the FNV-1a hash of a text, continued from `hash`.
constexpr std::uint64_t hash_of(std::string_view text,
                                std::uint64_t hash = 0xcbf29ce484222325) noexcept
{
    for (char const c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

/// Generates random numbers that are the same in each run.
class random_numbers {
public:
    explicit constexpr random_numbers(std::uint64_t seed) noexcept : state_(seed | 1) {}

    /// Returns a number below `end`.
    constexpr std::uint32_t below(std::uint32_t end) noexcept
    {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<std::uint32_t>((state_ >> 32) * end >> 32);
    }

private:
    std::uint64_t state_;
};

/// Returns the contents of the files with this ending below the directory `folder`, in the order of
/// their names. Omits files of more than `bytes_max`. Stops the program if no file is left.
inline std::vector<std::string> texts(const std::filesystem::path& folder, std::string_view ending,
                                      std::uintmax_t bytes_max = 1 << 16)
{
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.path().extension() == ending && entry.file_size() <= bytes_max)
            paths.push_back(entry.path());
    std::ranges::sort(paths);
    std::vector<std::string> all;
    for (const auto& path : paths) {
        std::ifstream in(path, std::ios::binary);
        all.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    if (all.empty()) {
        std::fprintf(stderr, "no file in %s ends in %s\n  nothing was computed\n  help: ls %s\n",
                     folder.c_str(), std::string(ending).c_str(), folder.c_str());
        std::exit(2);
    }
    return all;
}

/// Prints the result of a program.
inline void print(std::uint64_t result)
{
    std::printf("checksum of the results: %016llx\n", static_cast<unsigned long long>(result));
}

/// Calls a function with each of the documents, in several rounds, and prints a checksum of the
/// results.
template <class F>
void add_up_documents(int count, char** arguments, int usual, F result_of)
{
    int const all = rounds(count, arguments, usual);
    auto const documents = texts(KNOWN_DOCUMENTS, ".md");
    std::uint64_t sum = 0;
    for (int i = 0; i < all; ++i)
        for (const auto& document : documents)
            sum = sum * 31 + result_of(document);
    print(sum);
}

} // namespace known
