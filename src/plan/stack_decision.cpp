#include "stack_decision.hpp"

#include <algorithm>

namespace mallard::plan {
namespace {

constexpr std::size_t few_frames = 12;

/// The stack frames of a request, beginning with the caller of malloc.
class frames {
public:
    frames(std::uintptr_t caller, os::call_site here, os::stack_memory* last,
           std::size_t wanted) noexcept
    {
        std::size_t const most_now = std::min(wanted + skipped_max, most);
        std::size_t const count =
            last != nullptr ? copy_from(*last, here, most_now) : walk(here, most_now);
        // The frames before the caller's belong to functions of this library.
        std::size_t skipped = 0;
        while (skipped < skipped_max && skipped < count && at_[skipped] != caller)
            skipped += 1;
        bool const is_found = skipped < count && at_[skipped] == caller;
        if (!is_found)
            at_[0] = caller;
        all_ = is_found ? std::span(at_ + skipped, count - skipped) : std::span(at_, 1);
    }
    frames(frames const&) = delete;
    frames& operator=(frames const&) = delete;

    std::span<const std::uintptr_t> first(std::size_t most_frames) const noexcept
    {
        return all_.first(std::min(all_.size(), most_frames));
    }

private:
    static constexpr std::size_t skipped_max = 3;
    static constexpr std::size_t most = mallard_plan_frames_max + skipped_max;

    std::size_t walk(os::call_site here, std::size_t count) noexcept
    {
        at_[0] = here.pc;
        return 1 + os::walk({reinterpret_cast<void**>(at_ + 1), count - 1}, here);
    }

    /// Walks only up to the first frame that was also on the last stack, and copies the others from
    /// that stack.
    std::size_t copy_from(os::stack_memory& last, os::call_site here, std::size_t count) noexcept
    {
        os::walk(last, here);
        count = std::min<std::size_t>(count, last.depth);
        for (std::size_t i = 0; i < count; ++i)
            at_[i] = last.frames[last.depth - 1 - i].pc;
        return count;
    }

    std::uintptr_t at_[most];
    std::span<const std::uintptr_t> all_;
};

answer answer_of_stack(details const& d, std::span<const std::uintptr_t> stack) noexcept
{
    std::uint64_t const hash = hash_of(stack);
    for (const details* of = &d; of != nullptr; of = of->base) {
        std::size_t const mask = of->stacks.size() - 1;
        for (std::size_t at = hash & mask; of->stacks[at].count != 0; at = (at + 1) & mask)
            if (std::ranges::equal(std::span(of->stacks[at].frames, of->stacks[at].count), stack))
                return of->stacks[at].is;
    }
    return missing;
}

/// Returns the innermost range that contains the code at `pc`, or null if there is no such range.
const code_range* range_of_code(std::span<const code_range> ranges, std::uintptr_t pc) noexcept
{
    auto at = std::upper_bound(ranges.begin(), ranges.end(), pc,
                               [](std::uintptr_t p, code_range const& r) { return p < r.begin; });
    while (at != ranges.begin() && (at - 1)->end_max > pc)
        if (--at; at->end > pc)
            return &*at;
    return nullptr;
}

answer decide_by_ranges(details const& d, std::uintptr_t caller, os::call_site here,
                        os::stack_memory* last) noexcept
{
    if (d.ranges.empty())
        return unknown;
    frames const all(caller, here, last, mallard_plan_frames_max);
    for (std::uintptr_t const frame : all.first(mallard_plan_frames_max))
        if (auto const* const range = range_of_code(d.ranges, frame - 1))
            return range->rule;
    return unknown;
}

answer decide_by_stack(details const& d, std::size_t count, std::uintptr_t caller,
                       os::call_site here, os::stack_memory* last) noexcept
{
    // For a few frames, a walk is cheaper than a comparison with the last stack.
    frames const some(caller, here, count > few_frames ? last : nullptr, count);
    answer const is = answer_of_stack(d, some.first(count));
    return is == missing ? decide_by_ranges(d, caller, here, last) : is;
}

/// The maximum number of stacks on which a call of the region is searched in vain. After that, no
/// more stacks are searched, because the compiler may have inlined the function everywhere.
constexpr unsigned not_found_max = 16;

/// Finds the outermost call of the region on the last stack of the thread. The frame of the caller
/// later shows whether the call has returned. Inlined calls are ignored, because the code of an
/// inlined function ends before the function that contains it returns.
region_call find_region(details const& d, std::span<const os::stack_frame> stack) noexcept
{
    for (std::size_t i = 1; i < stack.size(); ++i) {
        os::stack_frame const& inside = stack[i];
        auto const* const range = range_of_code(d.ranges, inside.pc - 1);
        if (range != nullptr && stack[i - 1].slot != 0 &&
            os::function_begin(inside.pc) == range->begin)
            return {.slot = stack[i - 1].slot,
                    .pc = stack[i - 1].pc,
                    .rule = d.is_for_malloc ? answer{to_malloc} : range->rule};
    }
    return {};
}

} // namespace

void remember_region(details const& d, os::call_site here, stack_knowledge& of_thread) noexcept
{
    if (!d.has_one_rule || d.ranges.empty() || of_thread.region.not_found == not_found_max)
        return;
    os::walk(of_thread.last, here);
    unsigned const not_found = of_thread.region.not_found;
    of_thread.region = find_region(d, of_thread.last.frames.first(of_thread.last.depth));
    of_thread.region.not_found = not_found + (of_thread.region.slot == 0);
}

answer decide_by_walk(details const& d, answer known, std::uintptr_t caller, os::call_site here,
                      os::stack_memory* last) noexcept
{
    return known == by_range
               ? decide_by_ranges(d, caller, here, last)
               : decide_by_stack(d, static_cast<std::size_t>(known - by_stack), caller, here, last);
}

} // namespace mallard::plan
