// follows the advice: convert AS4 in different_words
//
// The program words.cpp with an arena for each call. The map in it is never destroyed.
#include "known.hpp"

#include <mallard/arena.hpp>
#include <mallard/winked.hpp>

#include <map>
#include <sstream>

using memory_type = mallard::arena<>;
template <class T>
using from_memory = mallard::allocator<T, memory_type>;
using word_type = std::basic_string<char, std::char_traits<char>, from_memory<char>>;
using count_type =
    std::map<word_type, int, std::less<>, from_memory<std::pair<const word_type, int>>>;

std::size_t different_words(const std::string& document)
{
    memory_type memory;
    mallard::winked<count_type> count(memory);
    std::istringstream text(document);
    for (word_type word(memory); text >> word;)
        ++(*count)[word];
    return count->size();
}

int main(int count, char** arguments)
{
    known::add_up_documents(count, arguments, 8, different_words);
}
