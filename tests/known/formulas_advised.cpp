// follows the advice: convert AS4 in value_of
//
// The program formulas.cpp with an arena for each tree, so nodes need no owners.
#include "formulas.hpp"

#include <mallard/arena.hpp>

template <class T>
using pointer = T*;

std::uint32_t value_of(const std::string& text)
{
    using node = known::formula<pointer>;
    mallard::arena<> memory;
    auto make = [&](char operation, std::uint32_t value, node* left, node* right) {
        return new (memory.allocate({sizeof(node), alignof(node)}))
            node{operation, value, left, right};
    };
    const char* at = text.c_str();
    const node* const tree = known::read_formula(at, make);
    return tree->result() ^ (tree->result() >> 7);
}

int main(int count, char** arguments)
{
    known::compute_formulas(count, arguments, value_of);
}
