// Sources of chunks: a buffer of the caller, a buffer in the object, any std::pmr::memory_resource,
// or another allocator. Two more sources, the heap and the empty source `null`, are in
// chunk_source.hpp, which this header includes. Pages of the operating system are in pages.hpp.
#pragma once

#include <mallard/detail/base/chunk_source.hpp>

#include <memory_resource>

/// The namespace with all names of the C++ library: allocators, sources, adaptors, objects and
/// keys.
namespace mallard {

// clang-format off
/// An allocator with marks, which can free all blocks that were allocated after a mark.
template <class A>
concept rewindable = resettable<A> && requires(A& a, typename A::mark_type m) {
    { a.mark() } noexcept -> std::same_as<typename A::mark_type>;
    a.rewind(m);
};

/// An allocator or source with `owns(p)`, which returns whether the address `p` is in its memory.
template <class S>
concept owning = requires(const S& s, const void* p) {
    { s.owns(p) } noexcept -> std::same_as<bool>;
};

/// An allocator that can grow a block in place.
template <class A>
concept expanding = block_allocator<A> && requires(A& a, void* p, layout from, layout to) {
    { a.try_expand(p, from, to) } noexcept -> std::same_as<bool>;
};
// clang-format on

/// Returns whether `p` points into `bytes`.
inline bool is_inside(std::span<const std::byte> bytes, const void* p) noexcept
{
    return bytes.data() <= p && p < bytes.data() + bytes.size();
}

/// Records how much of a buffer is in use. Chunks come from the front of the buffer. When the
/// newest chunk is returned, its bytes are free again. The bytes of any other returned chunk become
/// free only when all chunks were returned.
class taken_front {
public:
    /// Allocates the next chunk from `bytes`, or returns null if the rest is too small.
    chunk try_take(std::span<std::byte> bytes, layout l) noexcept
    {
        std::span const left = bytes.subspan(used_);
        std::size_t const padding = -reinterpret_cast<std::uintptr_t>(left.data()) & (l.align - 1);
        // Even a chunk of 0 bytes must not start at the end of the buffer, because another object
        // may have that address.
        if (left.size() <= padding || left.size() - padding < l.bytes)
            return {};
        used_ += padding + l.bytes;
        chunks_ += 1;
        return {left.data() + padding, l.bytes, l.align};
    }

    /// Returns a chunk of the buffer `bytes`.
    void give(std::span<std::byte> bytes, chunk c) noexcept
    {
        auto const offset =
            static_cast<std::size_t>(static_cast<std::byte*>(c.data) - bytes.data());
        chunks_ -= 1;
        if (chunks_ == 0)
            used_ = 0;
        else if (offset + c.bytes == used_)
            used_ = offset;
    }

private:
    std::size_t used_ = 0;
    std::size_t chunks_ = 0;
};

/// A source whose chunks are in a buffer of the caller. The buffer must outlive the source.
///
///     mallard::pool<mallard::borrowed> nodes(64, 0, mallard::borrowed(bytes));
class borrowed {
public:
    constexpr borrowed() noexcept = default;
    /// Makes a source that uses `bytes`.
    constexpr explicit borrowed(std::span<std::byte> bytes) noexcept : bytes_(bytes) {}
    constexpr borrowed(borrowed&& other) noexcept
        : bytes_(std::exchange(other.bytes_, {})), taken_(std::exchange(other.taken_, {}))
    {
    }
    constexpr borrowed& operator=(borrowed&& other) noexcept
    {
        bytes_ = std::exchange(other.bytes_, {});
        taken_ = std::exchange(other.taken_, {});
        return *this;
    }

    /// Allocates a chunk from the buffer, or returns null.
    chunk try_take(layout l) noexcept { return taken_.try_take(bytes_, l); }
    void give(chunk c) noexcept { taken_.give(bytes_, c); } ///< returns a chunk to the source
    /// Returns whether `p` points into the buffer.
    bool owns(const void* p) const noexcept { return is_inside(bytes_, p); }

private:
    std::span<std::byte> bytes_;
    taken_front taken_;
};

/// A source of `Bytes` bytes inside the object itself. It does not use the heap. It is neither
/// copied nor moved, because blocks lie in the object. On the stack, a buffer of more than 16 KiB
/// may be too large.
///
///     mallard::multipool<mallard::buffer<4096>> memory;
template <std::size_t Bytes>
class buffer {
public:
    constexpr buffer() noexcept : untouched_{} {}
    buffer(const buffer&) = delete;
    buffer& operator=(const buffer&) = delete;

    /// Allocates a chunk from the buffer, or returns null.
    chunk try_take(layout l) noexcept { return taken_.try_take(bytes_, l); }
    void give(chunk c) noexcept { taken_.give(bytes_, c); } ///< returns a chunk to the source
    /// Returns whether `p` points into the buffer.
    bool owns(const void* p) const noexcept { return is_inside(bytes_, p); }

private:
    taken_front taken_;
    union { // leaves the bytes uninitialised, so that a static buffer can be constinit
        char untouched_;
        alignas(std::max_align_t) std::byte bytes_[Bytes];
    };
};

/// A buffer has exactly as many bytes as its type contains.
template <std::size_t Bytes>
inline constexpr std::size_t source_bytes<buffer<Bytes>> = Bytes;

/// A source over any `std::pmr::memory_resource`. Without a constructor argument, uses the default
/// resource at the time of construction. Exceptions of the resource pass through `allocate`
/// unchanged.
///
///     mallard::arena<mallard::pmr_source> scratch(&resource);
class pmr_source {
public:
    /// Makes a source over a memory resource, which must outlive the source.
    pmr_source(std::pmr::memory_resource* upstream = std::pmr::get_default_resource()) noexcept
        : upstream_(upstream)
    {
    }

    /// Allocates a chunk, or throws what the resource throws.
    chunk take(layout l) { return {upstream_->allocate(l.bytes, l.align), l.bytes, l.align}; }

    /// Allocates a chunk, or returns null if the resource throws.
    chunk try_take(layout l) noexcept
    {
        return value_or_nothing([&] { return take(l); });
    }

    /// Returns a chunk to the resource.
    void give(chunk c) noexcept { upstream_->deallocate(c.data, c.bytes, c.align); }

    /// Returns the resource from which the source allocates.
    std::pmr::memory_resource* resource() const noexcept { return upstream_; }

private:
    std::pmr::memory_resource* upstream_;
};

/// A reference to a source or an allocator, so that several allocators can share it. The `ref` is a
/// source, and an allocator if `S` is an allocator. It has the size of a pointer. The borrowed
/// object must outlive the `ref` and must not move. Only the owner of that object can reset or
/// release it.
///
///     mallard::arena<> request;
///     mallard::pool<mallard::ref<mallard::arena<>>> nodes(64, 0, request);
template <source S>
class ref {
public:
    /// Whether any thread may call the borrowed source.
    static constexpr bool any_thread = shareable<S>;

    /// Makes a reference to the source.
    constexpr ref(S& borrowed_source) noexcept : source_(&borrowed_source) {}

    /// Allocates a chunk, or returns null.
    chunk try_take(layout l) noexcept { return mallard::try_take(*source_, l); }
    chunk take(layout l) { return mallard::take(*source_, l); } ///< allocates a chunk, or throws
    void give(chunk c) noexcept { mallard::give(*source_, c); } ///< returns a chunk to the source

    /// Allocates a block from the borrowed allocator, or throws.
    [[nodiscard]] void* allocate(layout l)
        requires block_allocator<S>
    {
        return source_->allocate(l);
    }
    /// Allocates a block from the borrowed allocator, or returns null.
    [[nodiscard]] void* try_allocate(layout l) noexcept
        requires block_allocator<S>
    {
        return source_->try_allocate(l);
    }
    /// Frees a block of the borrowed allocator.
    void deallocate(void* block, layout l) noexcept
        requires block_allocator<S>
    {
        source_->deallocate(block, l);
    }

    /// Returns whether the borrowed source owns the address.
    bool owns(const void* p) const noexcept
        requires owning<S>
    {
        return source_->owns(p);
    }
    /// Returns the size of the largest chunk that the borrowed source can supply.
    std::size_t most_to_take() const noexcept
        requires bounded<S>
    {
        return source_->most_to_take();
    }

    /// Returns the borrowed source.
    S& upstream() const noexcept { return *source_; }

private:
    S* source_;
};

/// A `ref` has as many bytes as the borrowed source.
template <source S>
inline constexpr std::size_t source_bytes<ref<S>> = source_bytes<S>;

} // namespace mallard
