// A ring buffer that passes blocks from one thread to another without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mallard::bench {

/// A ring buffer for one sender and one receiver. It is empty if all its bytes are zero.
template <std::size_t Blocks>
class ring {
public:
    bool push(void* block) noexcept
    {
        std::uint32_t const at = pushed_;
        if (at - std::atomic_ref(popped_).load(std::memory_order_acquire) == blocks_.size())
            return false;
        blocks_[at % blocks_.size()] = block;
        std::atomic_ref(pushed_).store(at + 1, std::memory_order_release);
        return true;
    }

    template <class F>
    void pop_all(F f)
    {
        std::uint32_t const end = std::atomic_ref(pushed_).load(std::memory_order_acquire);
        std::uint32_t at = popped_;
        if (at == end)
            return;
        for (; at != end; ++at)
            f(blocks_[at % blocks_.size()]);
        std::atomic_ref(popped_).store(at, std::memory_order_release);
    }

private:
    alignas(128) std::uint32_t pushed_;
    alignas(128) std::uint32_t popped_;
    alignas(128) std::array<void*, Blocks> blocks_;
};

} // namespace mallard::bench
