// Formulas as text, such as (3+(4*7)), and a reader that makes trees of them.
#pragma once

#include "known.hpp"

namespace known {

/// Appends a random formula to a text.
inline void append_formula(std::string& text, random_numbers& random, int depth)
{
    if (depth == 0) {
        text += std::to_string(random.below(1000));
        return;
    }
    text += '(';
    append_formula(text, random, depth - 1);
    text += "+-*"[random.below(3)];
    append_formula(text, random, depth - 1 - static_cast<int>(random.below(2)) * (depth > 1));
    text += ')';
}

/// A node. A leaf has the operator '#' and a value. `Pointer` points to a node, and may own the
/// node.
template <template <class> class Pointer>
struct formula {
    char operation;
    std::uint32_t value;
    Pointer<formula> left;
    Pointer<formula> right;

    std::uint32_t result() const
    {
        if (operation == '#')
            return value;
        std::uint32_t const a = left->result(), b = right->result();
        return operation == '+' ? a + b : operation == '-' ? a - b : a * b;
    }
};

/// Reads the formula at `at`, and moves `at` past the formula. `make` makes a node from its four
/// members.
template <class Make>
auto read_formula(const char*& at, Make& make) -> decltype(make('#', 0u, nullptr, nullptr))
{
    if (*at != '(') {
        std::uint32_t value = 0;
        while (*at >= '0' && *at <= '9')
            value = value * 10 + static_cast<std::uint32_t>(*at++ - '0');
        return make('#', value, nullptr, nullptr);
    }
    ++at;
    auto left = read_formula(at, make);
    char const operation = *at++;
    auto right = read_formula(at, make);
    ++at;
    return make(operation, 0u, std::move(left), std::move(right));
}

/// Computes random formulas with a function, and prints a checksum of the results.
template <class F>
void compute_formulas(int count, char** arguments, F value_of)
{
    int const rounds = known::rounds(count, arguments, 6000);
    random_numbers random(77);
    std::vector<std::string> formulas(64);
    for (auto& text : formulas)
        append_formula(text, random, 9);
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i)
        sum = sum * 31 + value_of(formulas[static_cast<std::size_t>(i) % formulas.size()]);
    print(sum);
}

} // namespace known
