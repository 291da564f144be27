// `failing`, an adaptor whose allocations fail on purpose, for tests.
#pragma once

#include <mallard/adapt/adaptor.hpp>

namespace mallard {

/// Selects the calls that fail, by their numbers. The first call has number 0.
///
///     mallard::failures{.first = 3}                   // only call 3
///     mallard::failures{.first = 3, .count = 10}      // calls 3 to 12
///     mallard::failures{.first = 9, .every = 10}      // calls 9, 19, 29, ...
struct failures {
    /// The value of `first` with which no call fails.
    static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

    std::size_t first = never; ///< the number of the first call that fails
    std::size_t count = 1;     ///< how many calls in a row fail
    std::size_t every = 0;     ///< the failures repeat after this many calls; 0: no repetition

    /// Returns whether call `number` fails. The first call has number 0.
    constexpr bool operator()(layout, std::size_t number) const noexcept
    {
        return number >= first && (every == 0 ? number - first : (number - first) % every) < count;
    }
};

/// A callable that returns whether the call with this layout and number fails.
template <class R>
concept failure_rule = requires(R& rule, layout l, std::size_t number) {
    { rule(l, number) } noexcept -> std::convertible_to<bool>;
};

/// Fails the calls that its rule selects, as if memory were exhausted. A call that fails in this
/// way does not call the wrapped object. Tests use `failing` to see what a program does when an
/// allocation fails.
///
///     mallard::failing<mallard::multipool<>> memory({.first = 3});
///
///     auto large = [](mallard::layout l, std::size_t) noexcept { return l.bytes > 4096; };
///     mallard::failing<mallard::multipool<>, decltype(large)> memory(large);
///
/// Without a rule, no call fails until you assign `rule()`. One thread at a time may use this
/// object. `for_each_failure` runs a function once for each allocation that the function makes, and
/// lets that allocation fail.
template <source Inner, failure_rule Rule = failures>
class failing : public adaptor<failing<Inner, Rule>, Inner> {
    using base = adaptor<failing, Inner>;
    friend adaptor_access;

public:
    using base::base;
    /// Makes an allocator that fails calls by the given rule.
    constexpr explicit failing(Rule rule) noexcept
        requires std::default_initializable<Inner>
        : rule_(std::move(rule))
    {
    }
    /// Makes an allocator that fails calls by a rule. The other arguments construct the wrapped
    /// object.
    template <class... Args>
    constexpr failing(Rule rule, std::in_place_t, Args&&... args)
        : base(std::in_place, std::forward<Args>(args)...), rule_(std::move(rule))
    {
    }

    /// Returns the rule, which may be changed between calls.
    ///
    ///     memory.rule().first = memory.calls(); // the next call fails
    Rule& rule() noexcept { return rule_; }

    /// Returns the number of calls so far.
    std::size_t calls() const noexcept { return calls_; }
    /// Returns the number of calls that the rule made fail. Failures of the wrapped object do not
    /// count.
    std::size_t failed() const noexcept { return failed_; }

    /// Sets both counts to 0, so the next call has number 0.
    void restart() noexcept { calls_ = failed_ = 0; }

private:
    template <bool Throws>
    [[gnu::always_inline]] chunk take_one(layout l) noexcept(!Throws)
    {
        if (rule_(l, calls_++)) {
            failed_ += 1;
            return fail_allocation<Throws>();
        }
        return base::template take_below<Throws>(l);
    }
    [[gnu::always_inline]] void give_one(chunk c) noexcept { base::give_below(c); }
    static void forget_all() noexcept {}

    [[no_unique_address]] Rule rule_{};
    std::size_t calls_ = 0;
    std::size_t failed_ = 0;
};

} // namespace mallard
