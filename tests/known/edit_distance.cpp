// expected advice: leave
//
// Computes edit distances between words. Each comparison allocates two arrays of numbers, and the
// computation takes a hundred times as long as the allocations.
#include "known.hpp"

std::size_t distance(const std::string& from, const std::string& to)
{
    std::vector<std::size_t> before(to.size() + 1), row(to.size() + 1);
    for (std::size_t j = 0; j <= to.size(); ++j)
        before[j] = j;
    for (std::size_t i = 1; i <= from.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= to.size(); ++j)
            row[j] = std::min({before[j] + 1, row[j - 1] + 1,
                               before[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1)});
        std::swap(before, row);
    }
    return before.back();
}

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 6);
    known::random_numbers random(21);
    std::vector<std::string> words(60);
    for (auto& word : words)
        for (std::uint32_t i = 80 + random.below(80); i-- > 0;)
            word += static_cast<char>('a' + random.below(4));
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i)
        for (const auto& from : words)
            for (const auto& to : words)
                sum = sum * 31 + distance(from, to);
    known::print(sum);
}
