// Measures phases: all threads allocate many blocks, then each thread frees the blocks of its
// neighbour. The freed blocks have to move back to the threads that allocate in the next phase.
#include <bench/barrier.hpp>
#include <bench/clock.hpp>
#include <bench/threads/contenders.hpp>
#include <bench/threads/crew.hpp>

#include <algorithm>
#include <memory>

namespace mallard::bench {
namespace {

constexpr std::size_t burst_blocks = 10'000;

template <class C>
class bursts {
public:
    bursts(std::size_t threads, std::size_t count, std::size_t repeats)
        : blocks_(make_shared_by<C>(threads, count)), repeats_(repeats), count_(count),
          phases_(std::make_unique<phase[]>(threads * repeats * 2)), between_(threads),
          team_(std::make_unique<crew>(threads))
    {
        for (std::size_t i = 0; i < threads; ++i)
            taken_.emplace_back(count);
    }
    bursts(const bursts&) = delete;
    bursts& operator=(const bursts&) = delete;
    ~bursts() { team_.reset(); }

    /// Measures one round. The time that threads wait for each other at the start and end of a
    /// phase does not count.
    void round(std::span<double> out)
    {
        team_->run([this](std::size_t i) { work(i); });
        double wall = 0;
        double cpu = 0;
        for (std::size_t p = 0; p < repeats_ * 2; ++p) {
            double first = of(0, p).begin_ns;
            double last = 0;
            for (std::size_t i = 0; i < team_->size(); ++i) {
                first = std::min(first, of(i, p).begin_ns);
                last = std::max(last, of(i, p).end_ns);
                cpu += of(i, p).cpu_ns;
            }
            wall += last - first;
        }
        auto const all = static_cast<double>(team_->size() * repeats_ * count_);
        out[0] = wall / all;
        out[1] = cpu / all;
    }

private:
    struct phase {
        double begin_ns = 0;
        double end_ns = 0;
        double cpu_ns = 0;
    };

    phase& of(std::size_t thread, std::size_t number)
    {
        return phases_[thread * repeats_ * 2 + number];
    }

    void work(std::size_t thread)
    {
        auto& blocks = of_thread(*blocks_, thread);
        table<void*>& mine = taken_[thread];
        table<void*>& others = taken_[(thread + 1) % team_->size()];
        for (std::size_t r = 0; r < repeats_; ++r) {
            timed(of(thread, 2 * r), [&] {
                for (void*& block : mine) {
                    block = blocks.allocate();
                    touch(block, r);
                }
            });
            timed(of(thread, 2 * r + 1), [&] {
                for (void* const block : others)
                    blocks.deallocate(keep(block));
            });
        }
    }

    template <class Body>
    void timed(phase& p, Body body)
    {
        between_.pass();
        p.begin_ns = wall_ns();
        double const cpu = cpu_ns();
        body();
        p.cpu_ns = cpu_ns() - cpu;
        p.end_ns = wall_ns();
    }

    std::unique_ptr<C> blocks_;
    std::size_t repeats_;
    std::size_t count_;
    std::vector<table<void*>> taken_; // the blocks that each thread allocated
    std::unique_ptr<phase[]> phases_;
    gate between_;
    std::unique_ptr<crew> team_;
};

experiment burst(effort how, std::size_t threads)
{
    std::size_t const repeats = how.is_smoke() ? 1 : how.is_brief() ? 2 : 8;
    return {.asks = std::to_string(threads) +
                    " threads each allocate 10,000 blocks of 64 bytes and write to them; when all "
                    "have, each frees those of its neighbour; again and again. ns a pair: wall "
                    "time / pairs of all threads, and CPU time",
            .figures = costs(threads_name("bursts", threads), threads),
            .entrants = entrants_for({.live = burst_blocks, .threads = threads, .crosses = true},
                                     [how, threads, repeats]<class C>() -> round_function {
                                         return [b = std::make_shared<bursts<C>>(
                                                     threads, how.count(burst_blocks), repeats)](
                                                    std::span<double> out) { b->round(out); };
                                     })};
}

} // namespace

std::vector<experiment> threads_bursts(effort how)
{
    std::vector<experiment> all;
    for (std::size_t const threads : thread_counts(2))
        all.push_back(burst(how, threads));
    return all;
}

} // namespace mallard::bench
