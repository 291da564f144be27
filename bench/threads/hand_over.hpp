// Runs threads that allocate (producers) and threads that free (consumers). Used by the cases in
// hand_over.cpp and flow.cpp.
#pragma once

#include <bench/barrier.hpp>
#include <bench/threads/contenders.hpp>
#include <bench/threads/crew.hpp>
#include <bench/threads/queue.hpp>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <numeric>

namespace mallard::bench {

/// Runs producers and consumers. No block is in use between two rounds.
template <class C>
class hand_over {
public:
    hand_over(std::size_t producers, std::size_t consumers)
        : producers_(producers), done_(producers),
          team_(std::make_unique<crew>(producers + consumers))
    {
    }

    /// Allocates the blocks. The constructor does not do this, because the blocks use memory.
    void make_blocks()
    {
        // Computes the maximum number of blocks that are in the queue or held by the threads.
        std::size_t const most = (batch_queue::batches + team_->size()) * batch_queue::batch_blocks;
        blocks_ = make_shared_by<C>(team_->size(), most + 1);
    }
    hand_over(const hand_over&) = delete;
    hand_over& operator=(const hand_over&) = delete;
    ~hand_over() { team_.reset(); }

    void start()
    {
        queue_.open(producers_);
        team_->start([this](std::size_t i) { i < producers_ ? produce(i) : consume(i); });
    }

    /// Writes the wall time and the CPU time for each block, in ns.
    void finish(std::span<double> out)
    {
        work_time const taken = team_->finish();
        auto const all = static_cast<double>(std::accumulate(done_.begin(), done_.end(), 0ul));
        out[0] = taken.wall_ns / all;
        out[1] = taken.cpu_ns / all;
    }

private:
    void produce(std::size_t thread)
    {
        auto& blocks = of_thread(*blocks_, thread);
        batch_queue::batch full;
        std::size_t count = 0;
        do {
            for (void*& block : full) {
                block = blocks.allocate();
                word_of(block).store(mark_of(block), std::memory_order_relaxed);
            }
            queue_.push(full);
            count += full.size();
        } while (!team_->is_over());
        queue_.leave();
        done_[thread] = count;
    }

    void consume(std::size_t thread)
    {
        auto& blocks = of_thread(*blocks_, thread);
        batch_queue::batch full;
        while (queue_.pop(full)) {
            for (void* const block : full) {
                if (word_of(block).load(std::memory_order_relaxed) != mark_of(block))
                    std::abort(); // two threads had the same block at the same time
                blocks.deallocate(block);
            }
        }
    }

    // Returns the word as an atomic, because the contender limit/queue-alone may reuse a block that
    // a slow consumer still has. The instructions are the same as for an ordinary word.
    static std::atomic_ref<std::uint64_t> word_of(void* block) noexcept
    {
        return std::atomic_ref(*static_cast<std::uint64_t*>(block));
    }

    static std::uint64_t mark_of(void* block) noexcept
    {
        return ~reinterpret_cast<std::uint64_t>(block);
    }

    std::size_t producers_;
    batch_queue queue_;
    std::vector<std::size_t> done_; // blocks of each producer
    std::unique_ptr<C> blocks_;
    std::unique_ptr<crew> team_;
};

} // namespace mallard::bench
