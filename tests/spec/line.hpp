// A line of a program in spec/, read word by word. spec/README.md describes the language.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace mallard::testing::spec {

/// Thrown when an expectation of a line is false, or the line has a syntax error.
struct broken {
    std::string why;
};

/// Thrown when an allocation fails.
struct refused : broken {};

inline void hold(bool holds, const std::string& why)
{
    if (!holds)
        throw broken{why};
}

using numbers = std::map<std::string, std::size_t>;

class line {
public:
    line(const std::string& text, const numbers& known) : known_(&known)
    {
        std::istringstream words(text.substr(0, text.find('#')));
        for (std::string word; words >> word;)
            words_.push_back(word);
    }

    bool empty() const { return next_ == words_.size(); }

    /// Consumes the next word if it is `expected`, and returns whether it is.
    bool take(const char* expected)
    {
        bool const found = !empty() && words_[next_] == expected;
        next_ += found;
        return found;
    }

    std::string word(const char* what)
    {
        hold(!empty(), std::string("there should be ") + what);
        return words_[next_++];
    }

    /// Parses `NAME =`. Returns an empty name if the line has none.
    std::string result()
    {
        if (next_ + 1 >= words_.size() || words_[next_ + 1] != "=")
            return {};
        next_ += 2;
        hold(words_[next_ - 2].find_first_not_of("0123456789") != std::string::npos,
             "a name is not a number");
        return words_[next_ - 2];
    }

    /// Parses a number: 40, 64K, 2M, 8G, `most`, or a name that the program gave to a number.
    std::size_t number(const char* what)
    {
        std::string const text = word(what);
        if (text == "most")
            return std::numeric_limits<std::size_t>::max();
        if (auto const found = known_->find(text); found != known_->end())
            return found->second;
        std::size_t value = 0;
        auto const [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        std::string_view const units(rest, text.data() + text.size());
        std::size_t const unit = std::string_view("KMG").find(units);
        hold(error == std::errc() && units.size() <= 1 && (units.empty() || unit < 3),
             text + " should be " + what);
        return units.empty() ? value : value << (10 * (unit + 1));
    }
    std::size_t number_or(std::size_t otherwise)
    {
        return empty() ? otherwise : number("a number");
    }

    void end() const
    {
        if (!empty())
            throw broken{"nothing should follow, but there is " + words_[next_]};
    }

private:
    const numbers* known_;
    std::vector<std::string> words_;
    std::size_t next_ = 0;
};

} // namespace mallard::testing::spec
