// The objects on which the lines of a spec/ program operate: an allocator, and the blocks or
// objects that the allocator has returned.
#pragma once

#include "../support/sources.hpp"
#include "line.hpp"

#include <mallard/options.hpp>

#include <memory>

namespace mallard::testing::spec {

/// A set of options. Each program runs with each manner that its allocators support.
struct manner {
    const char* name;
    reuse order;
    check checks;
    sync threads;
};

/// The source and the counters of an allocator. Each allocator gets a new one.
struct ground {
    failing_source source;
    numbers named;
};

/// An allocator on which a program runs. Each verb is a member function, which returns false if
/// this kind of allocator does not support the verb.
class subject {
public:
    virtual ~subject() = default;

    virtual bool run(const std::string& verb, const std::string& name, line& l) = 0;
    /// Runs the next call, which must fail as if the source were exhausted.
    virtual bool refuses(const std::string& verb, line& l) = 0;
    /// Runs the next call, which makes an object whose constructor throws.
    virtual bool throws(const std::string&, line&) { return false; }
    virtual bool expect(const std::string& name, const std::string& is, line& l) = 0;
    virtual std::optional<std::size_t> count(const std::string& name) const = 0;
    /// Verifies that all live blocks have kept their bytes.
    virtual void verify() const = 0;
};

/// Parses the growth rule in the line that makes an allocator. Words that are missing keep the
/// values of `rule`.
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

/// Returns whether a call throws `std::bad_alloc`.
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

/// Calls `f`, which must not throw.
template <class F>
void must(F call)
{
    if (throws_bad_alloc(call))
        throw refused{{"it is refused"}};
}

/// Moves an allocator to another place and back, and verifies that the moved-from allocator is
/// empty and works.
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
