// Growth rules. A rule computes how many bytes an allocator requests from its source at a time (a
// step).
#pragma once

#include <mallard/detail/base/bits.hpp>

#include <algorithm>
#include <type_traits>

namespace mallard {

/// A growth rule. The next chunk request has `last * num / den + add` bytes, but at most `max`,
/// where `last` is the size of the previous request.
///
///     growth{}                          // 4 KiB, doubling to 1 MiB
///     growth{.first = 1 << 16, .num = 3, .den = 2}
///     growth::linear(4096, 4096)        // 4, 8, 12 KiB, ...
///     growth::none(1 << 20)             // one step, then exhausted
///
/// If a block is larger than the next chunk request, the request is just large enough for the
/// block, and later requests do not become larger. `limit` is the maximum number of bytes that the
/// allocator holds. The last chunk request is reduced to what the limit still allows. If the limit
/// is 8 KiB or more, blocks can fill at least nine tenths of the limit. To make this possible, a
/// chunk request under a limit is for a whole number of blocks, and a pool adapts the size of its
/// chunks to the size of its blocks.
struct growth {
    std::size_t first = 4096;                                    ///< bytes of the first request
    std::size_t max = std::size_t{1} << 20;                      ///< bytes of the largest request
    std::size_t num = 2;                                         ///< next = last * num / den + add
    std::size_t den = 1;                                         ///< see `num`
    std::size_t add = 0;                                         ///< see `num`
    std::size_t limit = std::numeric_limits<std::size_t>::max(); ///< limit of all bytes held

    /// Returns a rule with a single chunk request of `bytes` bytes.
    static constexpr growth none(std::size_t bytes) noexcept
    {
        return {.first = bytes, .max = bytes, .num = 1, .limit = bytes};
    }
    /// Returns a rule whose chunk requests all have `bytes` bytes.
    static constexpr growth fixed(std::size_t bytes) noexcept
    {
        return {.first = bytes, .max = bytes, .num = 1};
    }
    /// Returns a rule in which each chunk request has `add` bytes more than the one before.
    static constexpr growth linear(std::size_t first, std::size_t add) noexcept
    {
        return {.first = first, .num = 1, .add = add};
    }

    /// Returns a placeholder for the options of an allocator. The growth rule is then an argument
    /// of the constructor.
    static constexpr growth at_run_time() noexcept
    {
        return {.den = std::numeric_limits<std::size_t>::max()};
    }
    /// Returns whether this rule is the placeholder `at_run_time()`.
    constexpr bool is_at_run_time() const noexcept
    {
        return den == std::numeric_limits<std::size_t>::max();
    }

    /// Returns whether the rule allows only one chunk request.
    constexpr bool is_single() const noexcept { return limit <= first; }

    friend constexpr bool operator==(const growth&, const growth&) = default;

    /// Returns the size of the chunk request after a request of `last` bytes, before it is limited
    /// by `max` and `limit`.
    constexpr std::size_t after(std::size_t last) const noexcept
    {
        return last == 0
                   ? first
                   : saturating_add(saturating_mul(last, num) / std::max(den, std::size_t{1}), add);
    }
};

/// A custom rule, passed to a constructor. The function returns the size of the next chunk request.
/// `last` is the size of the previous one (0 at first), and `asked` is the size that the allocator
/// needs. All sizes are in bytes. `max` and `limit` still apply.
///
///     auto by_pages = [](std::size_t, std::size_t asked) noexcept { return asked + 4096; };
///     mallard::arena<> scratch(by_pages);
using growth_function = std::size_t (*)(std::size_t last, std::size_t asked) noexcept;

/// The rule of one allocator, which is the rule of its type, or a custom function.
template <growth Growth>
struct growth_rule {
    growth_function custom = nullptr; ///< computes the sizes; null: use the rule of the type

    /// Returns the rule in the type of the allocator. Its `max` and `limit` apply to a custom
    /// function too.
    static constexpr const growth& bounds() noexcept { return bounds_of_type; }
    /// Returns the size of the chunk request after a request of `last` bytes, for an allocator that
    /// needs `asked` bytes, before it is limited by `max` and `limit`.
    constexpr std::size_t next(std::size_t last, std::size_t asked) const noexcept
    {
        return custom != nullptr ? custom(last, asked) : Growth.after(last);
    }

private:
    static constexpr growth bounds_of_type = Growth;
};

/// The rule of one allocator, if the rule is chosen at run time.
template <growth Growth>
    requires(Growth.is_at_run_time())
struct growth_rule<Growth> {
    growth chosen{}; ///< the rule, as given to the constructor

    /// Returns the rule, whose `max` and `limit` bound each chunk request.
    constexpr const growth& bounds() const noexcept { return chosen; }
    /// Returns the size of the chunk request after a request of `last` bytes.
    constexpr std::size_t next(std::size_t last, std::size_t) const noexcept
    {
        return chosen.after(last);
    }
};

/// The type of an allocator's constructor argument. It is a custom function, or the growth rule
/// itself if the rule is chosen at run time.
template <growth Growth>
using growth_argument = std::conditional_t<Growth.is_at_run_time(), growth, growth_function>;

/// How much memory an allocator has, and the size of the next chunk request.
template <growth Growth>
class growth_state {
public:
    constexpr growth_state() noexcept = default;
    /// Makes a state without memory, whose chunk requests follow `given`.
    constexpr explicit growth_state(growth_argument<Growth> given) noexcept : rule_{given} {}

    /// Returns the size of the next chunk request, limited by `max` but not by `limit`.
    constexpr std::size_t rule(std::size_t asked) const noexcept
    {
        return std::min(rule_.next(last_, asked), rule_.bounds().max);
    }

    /// Returns the size of the chunk request of an allocator that needs `asked` bytes. The result
    /// is at least `asked`, or 0 if the limit does not allow `asked` bytes.
    constexpr std::size_t step(std::size_t asked) const noexcept
    {
        return asked > left() ? 0 : std::min(std::max(rule(asked), asked), left());
    }

    /// Records that the source supplied `bytes` for a chunk request of `step` bytes. If a large
    /// block has enlarged one request, later requests do not become larger because of that. `step`
    /// is the size that `step()` returned, before the pool rounded the request down to whole
    /// blocks, so the rounding does not make later requests smaller.
    constexpr void took(std::size_t bytes, std::size_t step) noexcept
    {
        taken_ += bytes;
        steps_ += 1;
        last_ = std::min(step, rule(step));
    }
    /// Records that the source supplied `bytes` for a chunk request of the same size.
    constexpr void took(std::size_t bytes) noexcept { took(bytes, bytes); }

    /// Returns whether the limit allows `bytes` more for bookkeeping. Such memory does not belong
    /// to a chunk request, but counts towards the limit.
    constexpr bool admits(std::size_t bytes) const noexcept { return bytes <= left(); }
    /// Records that `bytes` were allocated for bookkeeping.
    constexpr void took_aside(std::size_t bytes) noexcept { taken_ += bytes; }
    /// Records that `bytes` were returned to the source.
    constexpr void gave(std::size_t bytes) noexcept { taken_ -= bytes; }

    /// Returns a copy with the same rule and no memory, as after construction.
    constexpr growth_state anew() const noexcept
    {
        growth_state fresh;
        fresh.rule_ = rule_;
        return fresh;
    }

    /// Starts again with the size of the first chunk request, after all memory was returned.
    constexpr void restart() noexcept
    {
        taken_ = 0;
        last_ = 0;
    }

    /// Returns the maximum number of bytes that the allocator may hold.
    constexpr std::size_t limit() const noexcept { return rule_.bounds().limit; }
    /// Returns whether the rule has a limit.
    constexpr bool is_limited() const noexcept
    {
        return limit() != std::numeric_limits<std::size_t>::max();
    }
    constexpr std::size_t taken() const noexcept { return taken_; } ///< bytes held now
    /// Returns the number of chunk requests since construction.
    constexpr std::size_t steps() const noexcept { return steps_; }

    /// Returns the bytes that the limit still allows. If the source supplies more than requested,
    /// the limit may be exceeded.
    constexpr std::size_t left() const noexcept { return limit() - std::min(limit(), taken_); }

private:
    std::size_t last_ = 0;
    std::size_t taken_ = 0;
    std::size_t steps_ = 0;
    growth_rule<Growth> rule_;
};

} // namespace mallard
