// follows the advice: pool AS7
//
// The program words.cpp with a multipool that outlives the calls of different_words.
#include "known.hpp"

#include <mallard/allocator.hpp>
#include <mallard/multipool.hpp>

#include <map>
#include <sstream>

template <class T>
using in_multipool = mallard::allocator<T, mallard::multipool<>>;
using word_type = std::basic_string<char, std::char_traits<char>, in_multipool<char>>;
using count_type =
    std::map<word_type, int, std::less<>, in_multipool<std::pair<const word_type, int>>>;

std::size_t different_words(mallard::multipool<>& memory, const std::string& document)
{
    count_type count(memory);
    std::istringstream text(document);
    for (word_type word(memory); text >> word;)
        ++count[word];
    return count.size();
}

int main(int count, char** arguments)
{
    mallard::multipool<> memory;
    known::add_up_documents(count, arguments, 8, [&](const std::string& document) {
        return different_words(memory, document);
    });
}
