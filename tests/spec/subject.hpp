// What the lines of a program are about: an allocator, and what it has given.
#pragma once

#include "../support/sources.hpp"
#include "line.hpp"

#include <mallard/options.hpp>

#include <memory>

namespace mallard::testing::spec {

/// Every program runs in each of these, as far as its allocators know them.
struct manner {
    const char* name;
    reuse order;
    check checks;
    sync threads;
};

/// What an allocator stands on, and what was counted. New with each allocator.
struct ground {
    failing_source source;
    numbers named;
};

/// Every verb is a member of the kinds of subjects; false: this one does not know it.
class subject {
public:
    virtual ~subject() = default;

    virtual bool run(const std::string& verb, const std::string& name, line& l) = 0;
    /// The call must fail as one does for want of memory.
    virtual bool refuses(const std::string& verb, line& l) = 0;
    /// The call makes an object whose constructor throws.
    virtual bool throws(const std::string&, line&) { return false; }
    virtual bool expect(const std::string& name, const std::string& is, line& l) = 0;
    virtual std::optional<std::size_t> count(const std::string& name) const = 0;
    /// Whether all that is in use is as it was left.
    virtual void verify() const = 0;
};

/// What an allocator's line says of its growth, over what it has without a word.
inline growth growth_from(line& l, growth rule)
{
    while (!l.empty()) {
        std::string const word = l.word("a field of growth");
        std::size_t const n = l.number("its value");
        if (word == "first")
            rule.first = n;
        else if (word == "max")
            rule.max = n;
        else if (word == "num")
            rule.num = n;
        else if (word == "den")
            rule.den = n;
        else if (word == "add")
            rule.add = n;
        else if (word == "limit")
            rule.limit = n;
        else if (word == "fixed")
            rule = growth::fixed(n);
        else if (word == "none")
            rule = growth::none(n);
        else
            throw broken{"growth has no " + word};
    }
    return rule;
}

/// Whether a call throws `std::bad_alloc`, and nothing else.
template <class F>
bool throws_bad_alloc(F call)
{
    try {
        call();
    } catch (const std::bad_alloc&) {
        return true;
    }
    return false;
}

/// Calls what is to succeed.
template <class F>
void must(F call)
{
    if (throws_bad_alloc(call))
        throw refused{{"it is refused"}};
}

/// Into another place and back; what was moved from is empty, and works.
template <class A, class Try>
void move_there_and_back(A& a, Try works)
{
    if constexpr (std::movable<A>) {
        A other(std::move(a));
        hold(a.stats().blocks_live == 0 && a.stats().bytes_taken == 0, "what is moved is empty");
        works(a);
        a = std::move(other);
    }
}

} // namespace mallard::testing::spec
