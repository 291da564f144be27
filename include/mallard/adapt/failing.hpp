// An adaptor that refuses on purpose.
#pragma once

#include <mallard/adapt/adaptor.hpp>

namespace mallard {

/// Which calls are refused, by number; the first is 0.
///
///     mallard::refusals{.first = 3}                   // number 3 alone
///     mallard::refusals{.first = 3, .count = 10}      // 3 to 12
///     mallard::refusals{.first = 9, .every = 10}      // 9, 19, 29, ...
struct refusals {
    static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

    std::size_t first = never;
    std::size_t count = 1; ///< together
    std::size_t every = 0; ///< and again, `every` calls later; 0: not again

    constexpr bool operator()(layout, std::size_t number) const noexcept
    {
        return number >= first && (every == 0 ? number - first : (number - first) % every) < count;
    }
};

/// Whether to refuse a call, from what is asked and its number. Any callable.
template <class R>
concept refusal_rule = requires(R& rule, layout l, std::size_t number) {
    { rule(l, number) } noexcept -> std::convertible_to<bool>;
};

/// Refuses what its rule says, as if memory had run out there; what it wraps is not
/// called then. For tests: to see a program fail where it never does.
///
///     mallard::failing<mallard::multipool<>> memory({.first = 3});
///
///     auto large = [](mallard::layout l, std::size_t) noexcept { return l.bytes > 4096; };
///     mallard::failing<mallard::multipool<>, decltype(large)> memory(large);
///
/// Made without a rule it refuses nothing, until `rule()` is assigned one. One thread
/// at a time. `for_each_failure` tries every number in turn.
template <source Inner, refusal_rule Rule = refusals>
class failing : public adaptor<failing<Inner, Rule>, Inner> {
    using base = adaptor<failing, Inner>;
    friend base;

public:
    using base::base;
    constexpr explicit failing(Rule rule) noexcept
        requires std::default_initializable<Inner>
        : rule_(std::move(rule))
    {
    }
    template <class... Args>
    constexpr failing(Rule rule, std::in_place_t, Args&&... args)
        : base(std::in_place, std::forward<Args>(args)...), rule_(std::move(rule))
    {
    }

    Rule& rule() noexcept { return rule_; }

    std::size_t calls() const noexcept { return calls_; }
    /// That its rule refused, and not what it wraps.
    std::size_t refused() const noexcept { return refused_; }

    /// The next call has number 0, and none was refused.
    void restart() noexcept { calls_ = refused_ = 0; }

private:
    template <bool Throws>
    [[gnu::always_inline]] chunk take_one(layout l) noexcept(!Throws)
    {
        if (rule_(l, calls_++)) {
            refused_ += 1;
            return refuse<Throws>();
        }
        return base::template take_below<Throws>(l);
    }
    [[gnu::always_inline]] void give_one(chunk c) noexcept { base::give_below(c); }
    static void forget_all() noexcept {}

    [[no_unique_address]] Rule rule_{};
    std::size_t calls_ = 0;
    std::size_t refused_ = 0;
};

} // namespace mallard
