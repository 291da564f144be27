// Memory for objects that live as long as the process.
#pragma once

#include "../os/memory.hpp"

#include <atomic>

namespace mallard::engine {

/// Allocates from mappings that are never unmapped. Only one thread at a time may use a store.
class permanent_store {
public:
    /// Returns zeroed memory, or null if the system supplies no memory. If all requested sizes are
    /// multiples of 128, all returned addresses are, too.
    void* allocate(std::size_t bytes) noexcept
    {
        if (left_ < bytes) {
            std::byte* const more = os::map(mapping_bytes);
            if (more == nullptr)
                return nullptr;
            next_ = more;
            std::atomic_signal_fence(std::memory_order_seq_cst);
            left_ = mapping_bytes;
        }
        // The order of the two writes matters, because a fork may happen between them. In the
        // child, `left_` must not exceed the bytes from `next_` to the end of the mapping.
        left_ -= bytes;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        void* const at = next_;
        next_ += bytes;
        return at;
    }

private:
    static constexpr std::size_t mapping_bytes = std::size_t{64} * 1024;

    std::byte* next_ = nullptr;
    std::size_t left_ = 0; ///< bytes from `next_` to the end of the mapping
};

} // namespace mallard::engine
