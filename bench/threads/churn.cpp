// Measures threads that start, use some blocks and exit. The cases show what a thread costs an
// allocator, and whether the memory of an exited thread is reused.
#include <bench/barrier.hpp>
#include <bench/patterns.hpp>
#include <bench/threads/contenders.hpp>
#include <bench/threads/crew.hpp>

#include <array>
#include <atomic>
#include <memory>

namespace mallard::bench {
namespace {

struct births_alone {
    static constexpr const char* name = "births-alone";
};

constexpr std::size_t life_blocks = 1000; // blocks that a thread allocates
constexpr std::size_t left_every = 10;    // one block in 10 is left to other threads

template <class C>
class churn {
public:
    churn(std::size_t threads, std::size_t lives)
        : blocks_(make_shared_by<C>(threads, 2 * life_blocks)), lives_(lives),
          left_(threads * life_blocks / left_every), team_(std::make_unique<crew>(threads))
    {
    }
    churn(const churn&) = delete;
    churn& operator=(const churn&) = delete;
    ~churn()
    {
        team_.reset();
        for (void* const block : left_) {
            if (block != nullptr)
                of_thread(*blocks_, 0).deallocate(block);
        }
    }

    void round(std::span<double> out)
    {
        std::atomic<std::size_t> born = 0;
        work_time const taken = team_->run([&](std::size_t i) {
            for (std::size_t number = 0; (number = born.fetch_add(1)) < lives_;)
                std::thread([this, i, number] { live(of_thread(*blocks_, i), number); }).join();
        });
        auto const lives = static_cast<double>(lives_);
        out[0] = taken.wall_ns / lives;
        out[1] = taken.wall_ns / (lives * life_blocks);
        out[2] = taken.cpu_ns / (lives * life_blocks);
    }

private:
    template <class Blocks>
    void live(Blocks& blocks, std::size_t number)
    {
        std::array<void*, life_blocks> taken;
        for (void*& block : taken) {
            block = blocks.allocate();
            touch(block, number);
        }
        random_numbers random(number);
        for (std::size_t i = 0; i < taken.size(); ++i) {
            void* block = taken[i];
            if (i % left_every == 0)
                block = std::atomic_ref(left_[random.below(left_.size())]).exchange(block);
            if (block != nullptr)
                blocks.deallocate(block);
        }
    }

    std::unique_ptr<C> blocks_;
    std::size_t lives_;
    table<void*> left_;
    std::unique_ptr<crew> team_; // each thread of the crew starts short threads in sequence
};

experiment lives_of(effort how, std::size_t threads)
{
    std::size_t const lives = how.is_smoke() ? 2 * threads : how.is_brief() ? 200 : 1000;
    std::string const name = threads_name("churn", threads);
    std::vector<figure> figures{{name, "ns_per_life", "", static_cast<int>(threads)}};
    append(figures, costs(name, threads));
    return {.asks =
                std::to_string(lives) + " threads, at most " + std::to_string(threads) +
                " at a time, each allocate 1,000 blocks of 64 bytes, free nine of ten, exchange "
                "the others for what earlier threads left, free that, and die. "
                "limit/births-alone allocates nothing. ns a thread: wall time / threads; ns a "
                "pair",
            .figures = std::move(figures),
            .entrants = entrants_for<recycler<births_alone, block_bytes>>(
                {.live = life_blocks, .threads = threads, .crosses = true},
                [threads, lives]<class C>() -> round_function {
                    return [c = std::make_shared<churn<C>>(threads, lives)](std::span<double> out) {
                        c->round(out);
                    };
                }),
            .rounds = 5};
}

} // namespace

std::vector<experiment> threads_churn(effort how)
{
    // Has few variants, because the slowest contender needs seconds for a round.
    std::vector<experiment> all{lives_of(how, 4)};
    if (std::size_t const most = thread_counts(1).back(); most > 8)
        all.push_back(lives_of(how, most));
    return all;
}

} // namespace mallard::bench
