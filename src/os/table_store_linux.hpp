// Allocates the memory of thread tables.
#pragma once

#include <mallard/detail/threads/thread_caches.hpp>

#include <cstddef>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace mallard::os {

/// A store for thread tables, which are mapped several at a time. The tables of exited threads are
/// reused for new threads, because an unmap interrupts every processor that runs a thread of the
/// program. The memory does not come from malloc, which may itself use a pool. The registry's lock
/// protects the store.
class table_store {
public:
    /// Returns a new or reused table, or null if there is no memory.
    thread_table* take() noexcept
    {
        thread_table* const spare = spare_;
        if (spare != nullptr)
            spare_ = spare->next_listed;
        void* const room = spare != nullptr ? spare : cut();
        return room == nullptr ? nullptr : ::new (room) thread_table;
    }

    void give(thread_table& t) noexcept { t.next_listed = std::exchange(spare_, &t); }

    /// Returns all memory to the system. Requires that no thread has a table.
    void unmap() noexcept
    {
        for (std::byte* map = std::exchange(newest_, nullptr); map != nullptr;)
            ::munmap(std::exchange(map, older(map)), map_bytes);
        spare_ = nullptr;
        uncut_ = 0;
    }

private:
    static constexpr std::size_t map_bytes = 16384;
    static constexpr std::size_t head_bytes =
        alignof(thread_table); // contains the previous map's address

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
            uncut_ = map_bytes - head_bytes;
        }
        uncut_ -= sizeof(thread_table);
        return newest_ + head_bytes + uncut_;
    }

    thread_table* spare_ = nullptr;
    std::byte* newest_ = nullptr;
    std::size_t uncut_ = 0; // unused bytes of the newest map after its head
};

} // namespace mallard::os
