// Measures threads that exist before the clock starts, and serve all rounds. Each thread allocates
// and frees blocks for a while, and its operations are counted.
#pragma once

#include <bench/bulk.hpp>
#include <bench/contenders/threads.hpp>
#include <bench/patterns.hpp>
#include <bench/threads/crew.hpp>

#include <memory>
#include <numeric>

namespace mallard::bench {

/// Each thread keeps `live` blocks and replaces a random one. If `live` is 0, it allocates a block
/// and frees it immediately.
///
/// Writes the ns of an allocation and its free: wall time / pairs of all threads, and CPU time /
/// pairs.
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

} // namespace mallard::bench
