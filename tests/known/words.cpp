// expected advice: convert AS4 in different_words
//
// Counts the different words of each document in a map that lives for one call, as in
// docs/guide/advise.md. An arena for each call saves all frees, and a pool half of that time.
#include "known.hpp"

#include <map>
#include <sstream>

std::size_t different_words(const std::string& document)
{
    std::map<std::string, int> count;
    std::istringstream text(document);
    for (std::string word; text >> word;)
        ++count[word];
    return count.size();
}

int main(int count, char** arguments)
{
    known::add_up_documents(count, arguments, 8, different_words);
}
