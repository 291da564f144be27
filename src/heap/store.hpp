// Memory for what is made and never unmade: cut from mappings that stay.
#pragma once

#include "../os/system.hpp"

namespace mallard::engine {

/// One at a time.
class stable_store {
public:
    /// Zeroed, at a multiple of 128 bytes if all sizes are; null: refused.
    void* cut(std::size_t bytes) noexcept
    {
        if (left_ < bytes) {
            std::byte* const more = os::map(mapping_bytes);
            if (more == nullptr)
                return nullptr;
            uncut_ = more;
            std::atomic_signal_fence(std::memory_order_seq_cst);
            left_ = mapping_bytes;
        }
        // In this order: the child of a fork may find one of them changed, and goes on.
        left_ -= bytes;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        void* const at = uncut_;
        uncut_ += bytes;
        return at;
    }

private:
    static constexpr std::size_t mapping_bytes = 64 * 1024;

    std::byte* uncut_ = nullptr;
    std::size_t left_ = 0;
};

} // namespace mallard::engine
