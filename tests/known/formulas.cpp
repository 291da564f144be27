// expected advice: convert AS4 in value_of
//
// Makes a tree of each formula and computes the value twice. The nodes have one size and are freed
// together.
#include "formulas.hpp"

#include <memory>

template <class T>
using owner = std::unique_ptr<T>;

std::uint32_t value_of(const std::string& text)
{
    using node = known::formula<owner>;
    auto make = [](char operation, std::uint32_t value, owner<node> left, owner<node> right) {
        return owner<node>(new node{operation, value, std::move(left), std::move(right)});
    };
    const char* at = text.c_str();
    auto const tree = known::read_formula(at, make);
    return tree->result() ^ (tree->result() >> 7);
}

int main(int count, char** arguments)
{
    known::compute_formulas(count, arguments, value_of);
}
