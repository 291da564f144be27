// What a file arena is from inside its file.
#pragma once

#include <mallard/detail/arena/arena_objects.hpp>
#include <mallard/detail/base/layout_hash.hpp>

#include <type_traits>

namespace mallard {

namespace os {
class file_image;
}

/// The blocks of a `file_arena`: a cursor at the first byte of the file's contents,
/// hence committed with them. A container that is itself in the file draws from
/// this, and finds it again after the file is reopened; the `file_arena` is an object
/// of the program, and gone by then.
///
///     using numbers = std::vector<int, mallard::allocator<int, mallard::file_blocks>>;
///     numbers* const kept = file.root_or_make<numbers>(file.blocks());
///
/// Gives blocks by moving the cursor, up to the arena's `max_bytes`; no call enters
/// the system. `deallocate` takes back the last block and otherwise does nothing.
/// Any alignment is honoured; above 2 MiB only where the file was created, not where
/// it was relocated. One thread at a time.
class file_blocks : private arena_objects<file_blocks> {
    friend class arena_objects<file_blocks>;
    friend class file_arena;
    friend class os::file_image;

public:
    constexpr file_blocks() noexcept = default;
    file_blocks(const file_blocks&) = delete;
    file_blocks& operator=(const file_blocks&) = delete;

    [[nodiscard]] void* allocate(layout l) { return bump<true>(l); }
    [[nodiscard]] void* try_allocate(layout l) noexcept { return bump<false>(l); }

    void deallocate(void* block, layout l) noexcept
    {
        std::size_t const at = offset_of(block);
        if (at + occupied(l.bytes) == used_)
            used_ = at;
    }

    // Not `own` and `defer`: no destructor waits for a program that may be killed.
    using arena_objects::copy;
    using arena_objects::make;
    using arena_objects::make_array;
    using arena_objects::try_make;

private:
    static constexpr std::size_t first_offset = 64; // of the first block

    // A block of 0 bytes is one of 1, so that it is distinct.
    static constexpr std::size_t occupied(std::size_t bytes) noexcept
    {
        return bytes + (bytes == 0);
    }

    std::byte* at(std::size_t offset) noexcept
    {
        return reinterpret_cast<std::byte*>(this) + offset;
    }
    std::size_t offset_of(const void* p) const noexcept
    {
        return reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(this);
    }

    // The address is aligned, not the offset: so one test is enough.
    template <bool Throws>
    [[gnu::always_inline]] void* bump(layout l) noexcept(!Throws)
    {
        std::byte* const p = align_up(at(used_), l.align);
        std::size_t const begin = offset_of(p);
        std::size_t const bytes = occupied(l.bytes);
        if (begin <= limit_ && bytes <= limit_ - begin) [[likely]] {
            used_ = begin + bytes;
            return p;
        }
        if constexpr (Throws)
            throw_bad_alloc();
        return nullptr;
    }

    // Offsets from this object. `limit_` is where the mapping of this process ends,
    // whatever the file says; 0 where nothing may be written.
    std::uint64_t used_ = 0;
    std::uint64_t limit_ = 0;
    std::uint64_t root_ = 0; // 0: none
    std::uint64_t root_mark_ = 0;
};

static_assert(std::is_standard_layout_v<file_blocks> && sizeof(file_blocks) == 32);

} // namespace mallard
