// expected advice: leave
//
// Sorts records by their text. Each text is so short that the string object itself holds the text.
#include "known.hpp"

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 10);
    known::random_numbers random(33);
    std::vector<std::string> records(50'000);
    for (auto& record : records)
        for (std::uint32_t i = 15; i-- > 0;)
            record += static_cast<char>('a' + random.below(3));
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i) {
        std::ranges::sort(records);
        sum = known::hash_of(records[records.size() / 2], sum);
        for (std::size_t at = records.size(); at-- > 1;)
            std::swap(records[at], records[random.below(static_cast<std::uint32_t>(at))]);
    }
    known::print(sum);
}
