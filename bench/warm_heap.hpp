// Keeps free memory in the C library's heap.
//
// glibc returns the top of its heap to the system as soon as the top is free, and the next
// allocation causes page faults again. The "cold" cases measure this cost. All other cases measure
// the cost of an allocator in a program that has run for a while, so that the memory is already
// resident.
#pragma once

#include <bench/harness.hpp>

#include <cstring>
#include <vector>

namespace mallard::bench {

/// While an object of this class exists, about `bytes` bytes of the C library's heap are free and
/// resident. The class keeps a block above these bytes, so that they are not at the top of the
/// heap. The class does nothing in a process whose memory is measured.
class warm_heap {
public:
    warm_heap(effort how, std::size_t bytes)
    {
        if (how.alone || how.is_smoke())
            return;
        std::vector<void*> parts(bytes / part_bytes);
        for (void*& part : parts)
            part = std::memset(std::malloc(part_bytes), 1, part_bytes);
        above_ = std::malloc(part_bytes);
        for (void* const part : parts)
            std::free(part);
    }
    warm_heap(const warm_heap&) = delete;
    warm_heap& operator=(const warm_heap&) = delete;
    ~warm_heap() { std::free(above_); }

private:
    static constexpr std::size_t part_bytes = 2048;

    void* above_ = nullptr;
};

} // namespace mallard::bench
