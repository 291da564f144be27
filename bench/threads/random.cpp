// Measures blocks that change threads at random, as in the benchmark larson. Each thread allocates
// a block, exchanges it for the block in a random slot of a shared array, and frees the block from
// the slot.
//
// Scheduling decides how many of the freed blocks another thread allocated, because a thread that
// has a processor for itself for a while finds mostly its own blocks. So every result has this
// share as `remote_percent`, and remote.cpp has cases with a fixed share.
#include <bench/patterns.hpp>
#include <bench/threads/contenders.hpp>
#include <bench/threads/crew.hpp>
#include <bench/threads/marked.hpp>

#include <atomic>
#include <memory>

namespace mallard::bench {
namespace {

constexpr std::size_t slots_a_thread = 1024;

template <class C>
class exchange {
public:
    explicit exchange(std::size_t threads)
        : blocks_(make_shared_by<C>(threads, slots_a_thread)), slots_(threads * slots_a_thread),
          counts_(std::make_unique<pair_counts[]>(threads)), team_(std::make_unique<crew>(threads))
    {
    }
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;
    ~exchange()
    {
        team_.reset();
        for (void* const block : slots_) {
            if (block != nullptr)
                give(of_thread(*blocks_, 0), block);
        }
    }

    void round(double ns, std::span<double> out)
    {
        work_time const taken = team_->run_for(ns, [this](std::size_t i) { work(i); });
        sum_up(taken, {counts_.get(), team_->size()}, out);
        rounds_ += 1;
    }

private:
    void work(std::size_t thread)
    {
        auto& blocks = of_thread(*blocks_, thread);
        random_numbers random(thread + rounds_ * team_->size());
        pair_counts c; // on the stack, where no thread shares the line
        repeat(*team_, [&] {
            void* const fresh = take(blocks, sizes_, thread, c.steps++);
            std::atomic_ref<void*> const slot(slots_[random.below(slots_.size())]);
            void* const block = slot.exchange(fresh, std::memory_order_acq_rel);
            if (block == nullptr)
                return;
            c.free(owner_of(block, team_->size()), thread);
            give(blocks, block);
        });
        counts_[thread] = c;
    }

    std::unique_ptr<C> blocks_;
    table<std::uint32_t> sizes_ = mixed_sizes(1 << 12, 1024);
    table<void*> slots_;
    std::unique_ptr<pair_counts[]> counts_;
    std::size_t rounds_ = 0;
    std::unique_ptr<crew> team_;
};

experiment uniform(effort how, std::size_t threads)
{
    return {.asks = std::to_string(threads) +
                    " threads each allocate a block of 64 bytes, write to it, exchange it for what "
                    "a random slot of all holds, and free that. ns a pair: wall time / pairs of "
                    "all threads, and CPU time",
            .figures = costs_and_remote(threads_name("random/uniform", threads), threads),
            .entrants = entrants_for({.frees = order::shuffled,
                                      .live = slots_a_thread * threads,
                                      .threads = threads,
                                      .crosses = true},
                                     [how, threads]<class C>() -> round_function {
                                         return [e = std::make_shared<exchange<C>>(threads),
                                                 ns = window_ns(how)](std::span<double> out) {
                                             e->round(ns, out);
                                         };
                                     })};
}

} // namespace

std::vector<experiment> threads_random(effort how)
{
    std::vector<experiment> all;
    for (std::size_t const threads : thread_counts(2))
        all.push_back(uniform(how, threads));
    return all;
}

} // namespace mallard::bench
