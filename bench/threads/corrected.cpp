// The concurrent case of report 002 with its traps removed: threads that are
// there before the clock starts and stay, a time that is fixed instead of the
// work, what each thread did counted, more than one block live, every mode in
// one run, and a pool for one thread only where it has one, or each has its own.
//
// ns_per_op is wall time / pairs of all threads, as in the report. Where threads
// are more than processors it says how many pairs the machine does, not how long
// one takes; cpu_ns_per_op says what one costs.
#include <bench/bulk.hpp>
#include <bench/patterns.hpp>
#include <bench/threads/contenders.hpp>
#include <bench/threads/crew.hpp>

#include <memory>
#include <numeric>

namespace mallard::bench {
namespace {

template <class C>
class pairs {
public:
    pairs(std::size_t threads, std::size_t live)
        : blocks_(make_shared_by<C>(threads, live + 1)), which_(random_indices(steps, live)),
          team_(std::make_unique<crew>(threads))
    {
        for (std::size_t i = 0; i < threads; ++i)
            slots_.emplace_back(live);
        if (live > 1)
            team_->run([this](std::size_t i) { fill(of_thread(*blocks_, i), slots_[i]); });
    }
    pairs(const pairs&) = delete;
    pairs& operator=(const pairs&) = delete;
    ~pairs()
    {
        team_.reset();
        for (std::size_t i = 0; i < slots_.size() && slots_[i].size() > 1; ++i)
            empty(of_thread(*blocks_, i), slots_[i]);
    }

    void round(double ns, std::span<double> out)
    {
        std::vector<std::size_t> done(team_->size());
        work_time const taken = team_->run_for(ns, [&](std::size_t i) {
            done[i] = slots_[i].size() > 1 ? replace(i) : take_and_give(i);
        });
        auto const all = static_cast<double>(std::accumulate(done.begin(), done.end(), 0ul));
        out[0] = taken.wall_ns / all;
        out[1] = taken.cpu_ns / all;
    }

private:
    static constexpr std::size_t steps = 1 << 12;

    std::size_t take_and_give(std::size_t thread)
    {
        auto& blocks = of_thread(*blocks_, thread);
        return repeat(*team_, [&] { interleave(blocks, 1); });
    }

    std::size_t replace(std::size_t thread)
    {
        auto& blocks = of_thread(*blocks_, thread);
        table<void*>& slots = slots_[thread];
        std::size_t at = thread;
        return repeat(*team_, [&] {
            void*& slot = slots[which_[at++ % steps]];
            blocks.deallocate(slot);
            slot = blocks.allocate();
            touch_byte(slot, at);
        });
    }

    std::unique_ptr<C> blocks_;
    table<std::uint32_t> which_;
    std::vector<table<void*>> slots_;
    std::unique_ptr<crew> team_;
};

experiment corrected(effort how, std::size_t threads, std::size_t live)
{
    std::string const name = "report002/corrected/live-" + std::to_string(live);
    std::string const work = live == 1
                                 ? "allocates, writes a byte and frees"
                                 : "keeps " + std::to_string(live) +
                                       " blocks, of which a random one is freed and allocated anew";
    return {.asks = "Report 002, corrected: " + std::to_string(threads) +
                    " threads share a pool of blocks of 64 bytes; each " + work +
                    ". ns a pair: wall time / pairs of all threads, and CPU time",
            .figures = costs(threads_name(name, threads), threads, "corrected"),
            .entrants = entrants_for({.live = live, .threads = threads},
                                     [how, threads, live]<class C>() -> round_function {
                                         return [p = std::make_shared<pairs<C>>(threads, live),
                                                 ns = window_ns(how)](std::span<double> out) {
                                             p->round(ns, out);
                                         };
                                     }),
            .weight = 2};
}

} // namespace

std::vector<experiment> threads_corrected(effort how)
{
    std::vector<experiment> all;
    for (std::size_t const live : {1u, 64u}) {
        for (std::size_t const threads : thread_counts(1))
            all.push_back(corrected(how, threads, live));
    }
    return all;
}

} // namespace mallard::bench
