// The timed operations of the benchmark published with the project "fixed memory pool". Several
// suites repeat that benchmark. Each function returns a function that runs one round of one case.
#pragma once

#include <bench/bulk.hpp>
#include <bench/entrants.hpp>
#include <bench/measure.hpp>
#include <bench/page_faults.hpp>
#include <bench/warm_heap.hpp>

#include <memory>
#include <optional>

namespace mallard::bench {

inline constexpr std::size_t report_blocks = 1'000'000;
inline constexpr std::size_t report_block_bytes = 64;
inline constexpr std::size_t report_repeats = 9; // ten repetitions; the first does not count

/// In which state the contender is when a round of a bulk case starts its clock.
enum class bulk_start { built, constructed, kept };

/// Returns the round function of a bulk case. Each round writes the ns of an allocation and the ns
/// of a free. If four figures are requested, it also writes the page faults of both.
template <class C, bulk_start Start>
round_function bulk_round(effort how, order frees)
{
    struct state {
        state(effort e, order o) : slots(e.count(report_blocks)), in_order(indices(slots.size(), o))
        {
            if (Start == bulk_start::kept)
                warm.emplace(e, slots.size() * (report_block_bytes + 16));
        }
        std::optional<warm_heap> warm;
        table<void*> slots;
        table<std::uint32_t> in_order;
        std::optional<C> blocks;
    };
    auto const s = std::make_shared<state>(how, frees);
    return [s, frees](std::span<double> out) {
        auto const count = static_cast<double>(s->slots.size());
        auto const make = [&] { s->blocks.emplace(s->slots.size()); };
        if (Start == bulk_start::built || (Start == bulk_start::kept && !s->blocks)) {
            make();
            if (is_pool<C> || Start == bulk_start::kept)
                build_free_list(*s->blocks, s->slots);
        }
        faults_per_thousand const faults(s->slots.size());
        out[0] = ns_of([&] {
                     if (Start == bulk_start::constructed)
                         make();
                     fill(*s->blocks, s->slots);
                 }) /
                 count;
        double const while_filled = faults.so_far();
        out[1] = ns_of([&] {
                     if (frees == order::forward)
                         empty(*s->blocks, s->slots);
                     else
                         empty(*s->blocks, s->slots, s->in_order);
                 }) /
                 count;
        if (out.size() > 2) {
            out[2] = while_filled;
            out[3] = faults.so_far() - while_filled;
        }
        if (Start != bulk_start::kept)
            s->blocks.reset();
    };
}

/// Returns a round function that repeatedly allocates and frees one block.
template <class C>
round_function interleaved_round(effort how)
{
    return [count = how.count(report_blocks),
            blocks = std::make_shared<C>(16)](std::span<double> out) {
        out[0] = ns_of([&] { interleave(*blocks, count); }) / static_cast<double>(count);
    };
}

/// Returns a round function that repeatedly frees a random block of `live` blocks and allocates
/// another.
template <class C>
round_function replace_round(effort how, std::size_t live)
{
    struct state {
        state(effort e, std::size_t count)
            : blocks(count + 1), slots(count), which(random_indices(1 << 16, count)), timed(e)
        {
            fill(blocks, slots);
        }
        state(const state&) = delete;
        state& operator=(const state&) = delete;
        ~state()
        {
            if (!is_pool<C>) // the destructor of a pool frees all blocks
                empty(blocks, slots);
        }

        C blocks;
        table<void*> slots;
        table<std::uint32_t> which;
        batch timed;
        std::size_t at = 0;
    };
    return [s = std::make_shared<state>(how, how.count(live))](std::span<double> out) {
        out[0] = s->timed.ns_of_one([&](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
                void*& slot = s->slots[s->which[s->at++ % (1 << 16)]];
                s->blocks.deallocate(slot);
                slot = s->blocks.allocate();
                touch_byte(slot, i);
            }
        });
    };
}

} // namespace mallard::bench
