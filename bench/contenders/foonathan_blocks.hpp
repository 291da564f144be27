// A source for foonathan's stack that first supplies the caller's buffer, as the sources of the
// other monotonic allocators do.
#pragma once

#include <foonathan/memory/memory_stack.hpp>

#include <cstddef>
#include <new>
#include <span>
#include <utility>

namespace mallard::bench {

namespace fm = foonathan::memory;

/// Supplies the caller's buffer first, if there is one. Then supplies heap blocks, each twice as
/// large as the previous one. The class has the interface BlockAllocator of foonathan/memory.
class buffer_then_heap {
public:
    /// `block_size` is the size of the first block that is allocated from the heap.
    buffer_then_heap(std::size_t block_size, std::span<std::byte> buffer) noexcept
        : buffer_(buffer), block_size_(block_size)
    {
    }

    fm::memory_block allocate_block()
    {
        if (!buffer_.empty()) {
            std::span<std::byte> const first = std::exchange(buffer_, {});
            in_use_ = first.data();
            return {first.data(), first.size()};
        }
        fm::memory_block const block(::operator new(block_size_), block_size_);
        block_size_ *= 2;
        return block;
    }

    void deallocate_block(fm::memory_block block) noexcept
    {
        if (block.memory != in_use_)
            ::operator delete(block.memory);
    }

    std::size_t next_block_size() const noexcept
    {
        return buffer_.empty() ? block_size_ : buffer_.size();
    }

private:
    std::span<std::byte> buffer_; // empty once the buffer was supplied
    void* in_use_ = nullptr;      // the buffer, once it was supplied
    std::size_t block_size_;
};

using foonathan_stack_on_buffer = fm::memory_stack<buffer_then_heap>;

} // namespace mallard::bench
