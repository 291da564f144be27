// Measures mixes of sizes, lifetimes and threads that are typical of stress tests.
#include <bench/patterns.hpp>
#include <bench/worker/blocks.hpp>
#include <bench/worker/crews.hpp>
#include <bench/worker/job.hpp>

#include <atomic>
#include <cstring>
#include <deque>

namespace mallard::bench {
namespace {

enum class crossing : std::size_t { never, always, every_second };

// Allocates batches of blocks. Frees one half of a batch in the order of allocation, and the other
// half in reverse. In some variants another thread frees a batch, as in the benchmark sh8bench.
class batches {
public:
    batches(task const& t, effort how) : task_(t)
    {
        for (std::size_t i = 0; i <= t.threads; ++i)
            tables_.emplace_back(how.count(t.count));
        waiting_ = &tables_.back();
        team_ = std::make_unique<crew>(t.threads);
    }
    batches(const batches&) = delete;
    batches& operator=(const batches&) = delete;
    ~batches()
    {
        team_.reset();
        give(*waiting_);
    }

    void round(effort how, std::span<double> out)
    {
        time_crew(*team_, how, out, [this](std::size_t i) { return work(i); });
    }

private:
    std::size_t work(std::size_t thread)
    {
        random_numbers random(thread + 1);
        auto const cross = static_cast<crossing>(task_.variant);
        table<void*>* mine = &tables_[thread];
        // Continues with the table that this thread had at the end of the last round. Threads
        // exchange tables, so this may be the first table of another thread.
        mine = owned_[thread] == nullptr ? mine : owned_[thread];
        std::size_t done = 0;
        do {
            take(*mine, random);
            bool const crosses =
                cross == crossing::always || (cross == crossing::every_second && done % 2 == 1);
            if (crosses)
                mine = waiting_.exchange(mine);
            give(*mine);
            ++done;
        } while (!team_->is_over());
        owned_[thread] = mine;
        return done * mine->size();
    }

    // Returns the smaller of two random sizes, so that the probability falls linearly with size.
    std::size_t next_size(random_numbers& random) const
    {
        std::size_t const range = task_.most - task_.bytes + 1;
        return task_.bytes + std::min(random.below(range), random.below(range));
    }

    void take(table<void*>& blocks, random_numbers& random)
    {
        for (void*& block : blocks) {
            std::size_t const bytes = next_size(random);
            block = by_malloc::take(bytes);
            touch_pages(block, bytes);
        }
    }

    static void give(table<void*>& blocks)
    {
        std::size_t const half = blocks.size() / 2;
        for (std::size_t i = 0; i < half; ++i)
            by_malloc::give(std::exchange(blocks[i], nullptr), 0);
        for (std::size_t i = blocks.size(); i-- > half;)
            by_malloc::give(std::exchange(blocks[i], nullptr), 0);
    }

    task task_;
    std::deque<table<void*>> tables_;
    std::array<table<void*>*, 64> owned_{};
    std::atomic<table<void*>*> waiting_;
    std::unique_ptr<crew> team_;
};

round_function in_batches(task const& t, effort how)
{
    return
        [b = std::make_shared<batches>(t, how), how](std::span<double> out) { b->round(how, out); };
}

// Threads are started in each round, and their blocks stay after the threads have exited, as in the
// benchmark mstress. Some blocks pass through a buffer that all threads share. Every byte is
// written.
class generations {
public:
    generations(task const& t, effort how)
        : task_(t), steps_(how.is_smoke()   ? 100
                           : how.is_brief() ? 3000
                                            : 10'000),
          held_(t.threads * t.count), passed_(100), team_(std::make_unique<crew>(t.threads))
    {
    }
    generations(const generations&) = delete;
    generations& operator=(const generations&) = delete;
    ~generations()
    {
        team_.reset();
        for (auto const* const all : {&held_, &passed_}) {
            for (void* const block : *all)
                by_malloc::give(block, 0);
        }
    }

    void round(std::span<double> out)
    {
        ++rounds_;
        time_pass(*team_, out, [this](std::size_t i) {
            std::thread([this, i] { live(i); }).join();
            return steps_;
        });
    }

private:
    // Returns a random size. Most sizes are small, one in a hundred is large, and one in ten
    // thousand is very large.
    static std::size_t next_size(random_numbers& random)
    {
        std::size_t const rare = random.below(10'000);
        std::size_t const times = rare == 0 ? 10'000 : rare < 100 ? 100 : 1;
        return (8 + random.below(505)) * times;
    }

    void live(std::size_t thread)
    {
        random_numbers random(rounds_ * task_.threads + thread);
        for (std::size_t i = 0; i < steps_; ++i) {
            void*& slot = held_[thread * task_.count + random.below(task_.count)];
            std::size_t const choice = random.below(4);
            if (choice == 0) {
                std::atomic_ref other(passed_[random.below(passed_.size())]);
                slot = other.exchange(slot);
            }
            by_malloc::give(std::exchange(slot, nullptr), 0);
            if (choice != 1) {
                std::size_t const bytes = next_size(random);
                slot = std::memset(by_malloc::take(bytes), 1, bytes);
            }
        }
    }

    task task_;
    std::size_t steps_;
    std::size_t rounds_ = 0;
    table<void*> held_;
    table<void*> passed_;
    std::unique_ptr<crew> team_;
};

round_function in_generations(task const& t, effort how)
{
    return [g = std::make_shared<generations>(t, how)](std::span<double> out) { g->round(out); };
}

constexpr job jobs[] = {{"threads/batches", in_batches}, {"threads/generations", in_generations}};

} // namespace

std::span<const job> stress_jobs()
{
    return jobs;
}

} // namespace mallard::bench
