// expected advice: fix in remember
//
// Answers requests, and remembers each one although no request comes twice. The table grows until
// the program ends, and no allocator makes it smaller.
#include "known.hpp"

#include <unordered_map>

/// Stores the answer to a request, in case the same request comes again.
void remember(std::uint64_t request, const std::string& answer)
{
    static auto& answers = *new std::unordered_map<std::uint64_t, std::string>;
    answers.emplace(request, answer);
}

std::string answer_of(std::uint64_t request, const std::string& text)
{
    std::uint64_t sum = request;
    for (int i = 0; i < 2; ++i)
        sum = known::hash_of(text, sum);
    return std::string(400 + sum % 200, static_cast<char>('a' + sum % 26));
}

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 10);
    std::string const text(4'000, 'x');
    std::uint64_t sum = 0;
    for (std::uint64_t request = 0; request < static_cast<std::uint64_t>(rounds) * 3'000;
         ++request) {
        std::string const answer = answer_of(request, text);
        remember(request, answer);
        sum = sum * 31 + answer.size();
    }
    known::print(sum);
}
