// Holds blocks of random sizes. Any block can be replaced.
#pragma once

#include <bench/patterns.hpp>
#include <bench/worker/blocks.hpp>

namespace mallard::bench {

/// An array of `count` blocks. The sizes are uniform between `least` and `most` bytes.
class slots {
public:
    slots(std::size_t count, std::size_t least, std::size_t most, std::uint64_t seed)
        : least_(least), range_(most - least + 1), random_(seed), blocks_(count)
    {
        for (void*& block : blocks_)
            block = fresh();
    }
    slots(const slots&) = delete;
    slots& operator=(const slots&) = delete;
    ~slots()
    {
        for (void* const block : blocks_)
            by_malloc::give(block, 0);
    }

    std::size_t size() const noexcept { return blocks_.size(); }

    void replace()
    {
        replace([](void* block, std::size_t bytes) { touch_byte(block, bytes); });
    }

    /// Replaces a random block. `fill(block, bytes)` writes to the new block.
    template <class Fill>
    void replace(Fill fill)
    {
        void*& block = blocks_[random_.below(blocks_.size())];
        by_malloc::give(block, 0);
        std::size_t const bytes = next_size();
        block = by_malloc::take(bytes);
        fill(block, bytes);
    }

private:
    std::size_t next_size() { return least_ + random_.below(range_); }
    void* fresh()
    {
        void* const block = by_malloc::take(next_size());
        touch_byte(block, 1);
        return block;
    }

    std::size_t least_;
    std::size_t range_;
    random_numbers random_;
    table<void*> blocks_;
};

} // namespace mallard::bench
