// How much an allocator takes from its source at a time. Read on slow paths only.
#pragma once

#include <mallard/bits.hpp>

#include <algorithm>

namespace mallard {

/// Bytes of each step: next = last * num / den + add, never above `max`.
///
///     growth{}                          // 4 KiB, doubling to 1 MiB
///     growth{.first = 1 << 16, .num = 3, .den = 2}
///     growth::linear(4096, 4096)        // 4, 8, 12 KiB, ...
///     growth::none(1 << 20)             // one step, then exhausted
///
/// A single request above the step is served by a step of its own size, which
/// does not inflate those after it. `limit` bounds the sum of all that is held:
/// the last step is clamped to what is left of it, and a request is refused
/// only when it does not fit into that itself.
struct growth {
    std::size_t first = 4096;
    std::size_t max = std::size_t{1} << 20;
    std::size_t num = 2, den = 1, add = 0;
    std::size_t limit = std::numeric_limits<std::size_t>::max();

    static constexpr growth none(std::size_t bytes) noexcept
    {
        return {.first = bytes, .max = bytes, .num = 1, .limit = bytes};
    }
    static constexpr growth fixed(std::size_t bytes) noexcept
    {
        return {.first = bytes, .max = bytes, .num = 1};
    }
    static constexpr growth linear(std::size_t first, std::size_t add) noexcept
    {
        return {.first = first, .num = 1, .add = add};
    }

    /// True when there is one step and never another.
    constexpr bool is_single() const noexcept { return limit <= first; }
};

/// A rule of one's own, given to a constructor: the bytes of the last step (0 at
/// first) and of the request make the next step. `max` and `limit` still clamp.
using growth_function = std::size_t (*)(std::size_t last, std::size_t asked) noexcept;

/// Where one allocator stands in its growth.
template <growth Growth>
class growth_state {
public:
    constexpr growth_state() noexcept = default;
    constexpr explicit growth_state(growth_function custom) noexcept : custom_(custom) {}

    /// The bytes the rule would take next, whatever is asked.
    constexpr std::size_t rule(std::size_t asked) const noexcept
    {
        std::size_t const wanted = custom_ != nullptr ? custom_(last_, asked)
                                   : last_ == 0       ? Growth.first
                                                      : following(last_);
        return std::min(wanted, Growth.max);
    }

    /// The bytes to take next, at least `asked`; 0 when the limit refuses.
    constexpr std::size_t step(std::size_t asked) const noexcept
    {
        return asked > left() ? 0 : std::min(std::max(rule(asked), asked), left());
    }

    /// `bytes` came from the source. A step made larger for one request counts
    /// as the rule would have had it, so it does not inflate those after it.
    constexpr void took(std::size_t bytes) noexcept
    {
        taken_ += bytes;
        steps_ += 1;
        last_ = std::min(bytes, rule(bytes));
    }

    /// Bookkeeping beside the steps counts towards the limit too.
    constexpr bool admits(std::size_t bytes) const noexcept { return bytes <= left(); }
    constexpr void took_aside(std::size_t bytes) noexcept { taken_ += bytes; }
    constexpr void gave(std::size_t bytes) noexcept { taken_ -= bytes; }

    /// As it was made.
    constexpr growth_state anew() const noexcept { return growth_state(custom_); }

    /// All is given back: growth begins anew.
    constexpr void restart() noexcept
    {
        taken_ = 0;
        last_ = 0;
    }

    constexpr std::size_t taken() const noexcept { return taken_; }
    constexpr std::size_t steps() const noexcept { return steps_; }

private:
    // A source that gives more than it was asked for may overshoot the limit.
    constexpr std::size_t left() const noexcept
    {
        return Growth.limit - std::min(Growth.limit, taken_);
    }

    static constexpr std::size_t following(std::size_t last) noexcept
    {
        return saturating_add(
            saturating_mul(last, Growth.num) / std::max(Growth.den, std::size_t{1}), Growth.add);
    }

    std::size_t last_ = 0;
    std::size_t taken_ = 0;
    std::size_t steps_ = 0;
    growth_function custom_ = nullptr;
};

} // namespace mallard
