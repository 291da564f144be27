// Where the tables of threads come from.
#pragma once

#include <mallard/detail/threads/thread_fronts.hpp>

#include <cstddef>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace mallard::os {

/// Tables of threads, taken from the system some at a time and kept for the next
/// threads: to unmap one interrupts every processor that runs a thread of the program.
/// Not from any malloc, which may itself stand on a pool. Under the registry's lock.
class table_store {
public:
    /// Null when there is no memory.
    thread_table* take() noexcept
    {
        thread_table* const spare = spare_;
        if (spare != nullptr)
            spare_ = spare->next_listed;
        void* const room = spare != nullptr ? spare : cut();
        return room == nullptr ? nullptr : ::new (room) thread_table;
    }

    void give(thread_table& t) noexcept { t.next_listed = std::exchange(spare_, &t); }

    /// While no thread has one.
    void unmap() noexcept
    {
        for (std::byte* map = std::exchange(newest_, nullptr); map != nullptr;)
            ::munmap(std::exchange(map, older(map)), map_bytes);
        spare_ = nullptr;
        uncut_ = 0;
    }

private:
    static constexpr std::size_t map_bytes = 16384; // the first line has the map before it

    static std::byte*& older(std::byte* map) noexcept
    {
        return *reinterpret_cast<std::byte**>(map);
    }

    void* cut() noexcept
    {
        if (uncut_ < sizeof(thread_table)) {
            void* const fresh = ::mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (fresh == MAP_FAILED)
                return nullptr;
            older(static_cast<std::byte*>(fresh)) = newest_;
            newest_ = static_cast<std::byte*>(fresh);
            uncut_ = map_bytes - cache_line_bytes;
        }
        uncut_ -= sizeof(thread_table);
        return newest_ + cache_line_bytes + uncut_;
    }

    thread_table* spare_ = nullptr;
    std::byte* newest_ = nullptr;
    std::size_t uncut_ = 0; // bytes of the newest, from its first line on
};

} // namespace mallard::os
