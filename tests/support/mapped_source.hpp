// A source that maps pages without malloc. For children of a fork, and for pools that outlive
// static objects.
#pragma once

#include "require.hpp"

#include <mallard/source.hpp>

#include <atomic>

#include <sys/mman.h>

namespace mallard::testing {

class mapped_source {
public:
    static constexpr bool any_thread = true;

    constexpr mapped_source() noexcept = default;
    mapped_source(const mapped_source&) = delete;
    mapped_source& operator=(const mapped_source&) = delete;
    ~mapped_source() { require(bytes() == 0, "all chunks are returned"); }

    chunk try_take(layout l) noexcept
    {
        std::size_t const room = whole_pages(l.bytes) + l.align;
        void* const base =
            ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base == MAP_FAILED)
            return {};
        auto* const first = static_cast<std::byte*>(base);
        std::byte* const data = align_up(first, std::max(l.align, page_bytes));
        std::byte* const end = data + whole_pages(l.bytes);
        if (data != first)
            ::munmap(first, static_cast<std::size_t>(data - first));
        if (end < first + room)
            ::munmap(end, static_cast<std::size_t>(first + whole_pages(room) - end));
        bytes_ += l.bytes;
        return {data, l.bytes, l.align};
    }
    void give(chunk c) noexcept
    {
        bytes_ -= c.bytes;
        ::munmap(c.data, whole_pages(c.bytes));
    }

    std::size_t bytes() const { return bytes_.load(); }

private:
    static constexpr std::size_t whole_pages(std::size_t bytes)
    {
        return align_up(bytes, page_bytes);
    }

    std::atomic<std::size_t> bytes_ = 0;
};

} // namespace mallard::testing
