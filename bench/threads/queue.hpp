// A bounded queue that carries blocks from thread to thread. It is the same for all contenders.
//
// The queue carries 256 pointers at a time, so that the cost of its lock is negligible. A waiting
// thread sleeps until the queue is half full or half empty. So threads fall asleep rarely, and that
// cost is negligible too. The result of `limit/queue-alone` is the cost of the queue.
#pragma once

#include <bench/table.hpp>

#include <array>
#include <condition_variable>
#include <mutex>

namespace mallard::bench {

template <std::size_t BatchBlocks, std::size_t Batches>
class queue_of_batches {
public:
    static constexpr std::size_t batch_blocks = BatchBlocks;
    static constexpr std::size_t batches = Batches;
    using batch = std::array<void*, batch_blocks>;

    /// Opens the queue for `producers` threads. Each of them has to call `leave` when it is done.
    void open(std::size_t producers) { producers_ = producers; }

    void push(batch const& blocks)
    {
        std::unique_lock hold(mutex_);
        if (count_ == batches)
            room_.wait(hold, [this] { return count_ <= batches / 2; });
        ring_[(first_ + count_) % batches] = blocks;
        count_ += 1;
        if (count_ == batches / 2)
            filled_.notify_all();
    }

    /// Pops a batch. Returns false if the queue is empty and every producer has left.
    bool pop(batch& blocks)
    {
        std::unique_lock hold(mutex_);
        if (count_ == 0)
            filled_.wait(hold, [this] { return count_ >= batches / 2 || producers_ == 0; });
        if (count_ == 0)
            return false;
        blocks = ring_[first_];
        first_ = (first_ + 1) % batches;
        count_ -= 1;
        if (count_ == batches / 2)
            room_.notify_all();
        return true;
    }

    void leave()
    {
        std::lock_guard const hold(mutex_);
        producers_ -= 1;
        if (producers_ == 0)
            filled_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable room_;
    std::condition_variable filled_;
    std::size_t producers_ = 0;
    std::size_t first_ = 0;
    std::size_t count_ = 0;
    table<batch> ring_{batches};
};

using batch_queue = queue_of_batches<256, 32>;

} // namespace mallard::bench
