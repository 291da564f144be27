// Measures allocations and frees when another thread frees a fixed share of the blocks, as in the
// benchmark mt_remote.
//
// A step allocates a block. It sends the block to a random other thread, or it exchanges the block
// for one in a random slot of the same thread and frees the block from the slot.
//
// Blocks are sent through a ring buffer for each pair of threads. Each thread empties its ring
// buffers every 32 steps. If all ring buffers are full, the thread yields instead of freeing the
// block itself. So the share is as specified with any number of processors.
#include <bench/patterns.hpp>
#include <bench/threads/contenders.hpp>
#include <bench/threads/crew.hpp>
#include <bench/threads/marked.hpp>
#include <bench/threads/ring.hpp>

#include <sched.h>

#include <memory>

namespace mallard::bench {
namespace {

constexpr std::size_t slots_a_thread = 1024;

template <class C>
class senders {
public:
    senders(std::size_t threads, std::size_t percent)
        : blocks_(make_shared_by<C>(threads, 2 * slots_a_thread)), percent_(percent),
          rings_(threads * threads), counts_(std::make_unique<pair_counts[]>(threads)),
          team_(std::make_unique<crew>(threads))
    {
        for (std::size_t i = 0; i < threads; ++i)
            own_.emplace_back(slots_a_thread);
    }
    senders(const senders&) = delete;
    senders& operator=(const senders&) = delete;
    ~senders()
    {
        team_.reset();
        for (std::size_t i = 0; i < own_.size(); ++i) {
            auto& blocks = of_thread(*blocks_, i);
            for (void* const block : own_[i]) {
                if (block != nullptr)
                    give(blocks, block);
            }
            for (std::size_t from = 0; from < own_.size(); ++from)
                ring_of(from, i).pop_all([&](void* block) { give(blocks, block); });
        }
    }

    void round(double ns, std::span<double> out)
    {
        work_time const taken = team_->run_for(ns, [this](std::size_t i) { work(i); });
        sum_up(taken, {counts_.get(), team_->size()}, out);
        rounds_ += 1;
    }

private:
    ring<256>& ring_of(std::size_t from, std::size_t to) { return rings_[to * own_.size() + from]; }

    void work(std::size_t thread)
    {
        auto& blocks = of_thread(*blocks_, thread);
        random_numbers random(thread + rounds_ * own_.size());
        pair_counts c; // on the stack, where no thread shares the line
        auto const free = [&](void* block) {
            c.free(owner_of(block, own_.size()), thread);
            give(blocks, block);
        };
        auto const receive = [&] {
            for (std::size_t from = 0; from < own_.size(); ++from)
                ring_of(from, thread).pop_all(free);
        };
        repeat(*team_, [&] {
            if (c.steps % 32 == 0)
                receive();
            void* block = take(blocks, sizes_, thread, c.steps++);
            if (random.below(100) < percent_) {
                while (!send(block, thread, random)) {
                    if (team_->is_over())
                        return free(block);
                    receive();
                    sched_yield();
                }
                return;
            }
            block = std::exchange(own_[thread][random.below(slots_a_thread)], block);
            if (block != nullptr)
                free(block);
        });
        counts_[thread] = c;
    }

    // Sends a block to the first thread whose ring is not full, beginning with a random thread.
    bool send(void* block, std::size_t thread, random_numbers& random)
    {
        std::size_t const others = own_.size() - 1;
        std::size_t const first = random.below(others);
        for (std::size_t i = 0; i < others; ++i) {
            std::size_t const to = (thread + 1 + (first + i) % others) % own_.size();
            if (ring_of(thread, to).push(block))
                return true;
        }
        return false;
    }

    std::unique_ptr<C> blocks_;
    std::size_t percent_;
    table<std::uint32_t> sizes_ = mixed_sizes(1 << 12, 1024);
    std::vector<table<void*>> own_;
    table<ring<256>> rings_;
    std::unique_ptr<pair_counts[]> counts_;
    std::size_t rounds_ = 0;
    std::unique_ptr<crew> team_;
};

template <class C>
round_function senders_round(effort how, std::size_t threads, std::size_t percent)
{
    return [s = std::make_shared<senders<C>>(threads, percent),
            ns = window_ns(how)](std::span<double> out) { s->round(ns, out); };
}

experiment remote(std::size_t threads, std::size_t percent, std::string const& before,
                  std::string const& sizes, std::vector<entrant> entrants)
{
    std::string const share = std::to_string(percent);
    return {.asks = std::to_string(threads) + " threads each allocate blocks of " + sizes +
                    " and write to them; " + share +
                    " of 100 they send to another thread, which frees them, the others they free "
                    "themselves. ns a pair: wall time / pairs of all threads, and CPU time",
            .figures = costs_and_remote(threads_name(before + "remote-" + share, threads), threads),
            .entrants = std::move(entrants)};
}

experiment of_one_size(effort how, std::size_t threads, std::size_t percent)
{
    demand const wanted{.frees = order::shuffled,
                        .live = 2 * slots_a_thread,
                        .threads = threads,
                        .crosses = percent != 0};
    return remote(threads, percent, "random/", "64 bytes",
                  entrants_for(wanted, [how, threads, percent]<class C>() {
                      return senders_round<C>(how, threads, percent);
                  }));
}

experiment of_mixed_sizes(effort how, std::size_t threads, std::size_t percent)
{
    return remote(threads, percent, "random/mixed-sizes/", "8 to 1,024 bytes",
                  entrants_of(any_size_contenders{}, {.threads = threads, .crosses = true},
                              [how, threads, percent]<class C>() {
                                  return senders_round<C>(how, threads, percent);
                              }));
}

} // namespace

std::vector<experiment> threads_remote(effort how)
{
    std::vector<experiment> all;
    for (std::size_t const percent : {0u, 10u, 50u, 90u})
        all.push_back(of_one_size(how, 4, percent));
    for (std::size_t const threads : thread_counts(2))
        all.push_back(of_mixed_sizes(how, threads, 50));
    return all;
}

} // namespace mallard::bench
