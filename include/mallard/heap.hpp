// Heaps of the malloc engine. Each heap has separate memory, and all its blocks can be freed
// together.
//
// A program that includes this header must link Mallard's malloc. Otherwise the linker prints
// "undefined reference to `mallard_heap_create'". To link it:
//
//     CMake        target_link_libraries(app PRIVATE mallard::malloc)   # or mallard::malloc_static
//     pkg-config   pkg-config --cflags --libs mallard-malloc
//     linker       -lmallard-malloc, or -l:libmallard-malloc.a
#pragma once

#include <mallard/c/malloc.h>
#include <mallard/detail/base/size_class.hpp>
#include <mallard/options.hpp>
#include <mallard/source.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

namespace mallard {

/// The threads that may allocate from a heap. Any thread may free.
enum class sharing {
    one_thread, ///< only the thread that made the heap, or called `adopt` last; no lock
    any_thread  ///< any thread, under a lock
};

/// Limits for the bytes of a heap's chunks and large blocks. 0 means no limit.
///
///     mallard::heap request({.limit = 64 << 20}); // allocate throws above 64 MiB
struct heap_options {
    /// When the heap exceeds this limit, it calls `met`. It calls `met` for this limit again only
    /// after it was below three quarters of the limit.
    std::size_t limit_soft = 0;
    /// An allocation that would exceed this limit calls `met`, and fails if it would still exceed
    /// the limit.
    std::size_t limit = 0;
    /// `void met(void* context, std::size_t held, std::size_t limit)` is called by the thread that
    /// reached a limit. The function may call the heap, except for `reset` and `release`, and must
    /// not throw. The allocation is tried once more after the call, so the function may free blocks
    /// to make it succeed.
    mallard_limit_met met = nullptr;
    void* context = nullptr; ///< the first argument of `met`
};

/// Statistics of a heap.
struct heap_statistics : statistics {
    std::size_t bytes_taken_max = 0; ///< the largest `bytes_taken` so far
    std::size_t large_blocks = 0;    ///< blocks that are not in chunks
};

namespace detail {

/// A size class and the size of its blocks. Entry i of `fresh_classes` is the class for requests of
/// at most 16 * i bytes.
struct fresh_class {
    std::uint16_t index;
    std::uint16_t bytes;
};
inline constexpr std::size_t fresh_bytes_max = 1024;
inline constexpr auto fresh_classes = [] {
    using classes = size_classes<16, 2>;
    std::array<fresh_class, fresh_bytes_max / 16 + 1> all{};
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::size_t const index = classes::of(16 * i);
        all[i] = {static_cast<std::uint16_t>(index),
                  static_cast<std::uint16_t>(classes::bytes(index))};
    }
    return all;
}();

/// Empty bump ranges, with which each call takes the slow path. A moved-from heap uses them, and so
/// does every heap if the loaded library has another version.
inline constinit mallard_fresh nothing_fresh{};

} // namespace detail

/// Allocates blocks of any size. Any thread may free a block, and `release` frees all blocks
/// together.
///
///     mallard::heap request;
///     void* block = request.allocate(100);
///     std::free(block);      // in any thread; or request.deallocate(block)
///     request.release();     // frees all other blocks
///
/// A heap uses the malloc engine, so the program must link mallard::malloc or
/// mallard::malloc_static.
///
/// A heap has separate chunks. The first chunk has 64 KiB, and each later chunk is twice as large
/// as the one before, up to 4 MiB. Blocks above 1 MiB are not in chunks. `release` returns all
/// memory to the engine, so the rest of the program can use it. `reset` keeps the chunks. The time
/// of `release` and `reset` depends only on how many chunks and blocks above 1 MiB the heap has. A
/// heap without blocks uses less than 4 KiB, so a program may have thousands of heaps. A block is
/// at most a quarter larger than requested, and has at least 16 bytes. Each size class reserves 16
/// KiB or more of a chunk at a time, but touches only the pages that it needs. If a program has
/// only a few blocks of each size, a `multipool` needs less memory.
///
/// `free`, `realloc` and `malloc_usable_size` accept blocks of a heap too. `realloc` keeps a block
/// in its heap.
///
/// A `heap` belongs to one thread; `adopt` makes the calling thread the owner. Other threads may
/// call only `deallocate`, `owns` and `free`. If another thread allocates, the process stops. For a
/// `shared_heap`, any thread may call all functions. When `reset`, `release` or the destructor is
/// called, no other thread may use blocks of the heap.
///
/// When the system has no memory or the limit is reached, `allocate` throws `std::bad_alloc`, and
/// `try_allocate` returns null. Every request to a moved-from heap fails. A failed call changes
/// nothing.
template <sharing Threads>
class basic_heap {
public:
    /// Whether any thread may allocate from this heap (see `shareable`).
    static constexpr bool any_thread = Threads == sharing::any_thread;

    /// Makes a heap. Throws `std::bad_alloc` if there is no memory for the heap.
    explicit basic_heap(const heap_options& options = {}) : handle_(make(options))
    {
        if (handle_ == nullptr)
            throw_bad_alloc();
        if (mallard_fresh* const fresh = mallard_heap_fresh(handle_, MALLARD_FRESH_LAYOUT))
            fresh_ = fresh;
    }
    basic_heap(basic_heap&& other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)),
          fresh_(std::exchange(other.fresh_, &detail::nothing_fresh))
    {
    }
    basic_heap& operator=(basic_heap&& other) noexcept
    {
        basic_heap moved(std::move(other));
        std::swap(handle_, moved.handle_);
        std::swap(fresh_, moved.fresh_);
        return *this;
    }
    ~basic_heap() { mallard_heap_destroy(handle_); }

    /// Allocates a block, or throws `std::bad_alloc`.
    [[nodiscard, gnu::always_inline]] void* allocate(layout l)
    {
        void* const block = try_allocate(l);
        if (block == nullptr) [[unlikely]]
            throw_bad_alloc();
        return block;
    }
    /// Allocates a block, or returns null.
    [[nodiscard, gnu::always_inline]] void* try_allocate(layout l) noexcept
    {
        if (l.align > alignof(std::max_align_t)) [[unlikely]]
            return mallard_heap_allocate_aligned(handle_, l.bytes, l.align);
        if (!any_thread && l.bytes <= detail::fresh_bytes_max) [[likely]]
            if (void* const block = take_fresh(l.bytes)) [[likely]]
                return block;
        return mallard_heap_allocate(handle_, l.bytes);
    }

    /// Frees a block of this heap, of another heap, or of malloc. Does nothing for null. Any thread
    /// may call this function.
    void deallocate(void* block) noexcept { mallard_heap_free(handle_, block); }
    /// Frees a block as the function above does. The layout is not used.
    void deallocate(void* block, layout) noexcept { deallocate(block); }

    /// Frees every block and keeps the chunks.
    void reset() noexcept { mallard_heap_reset(handle_); }
    /// Frees every block and returns all memory to malloc.
    void release() noexcept { mallard_heap_release(handle_); }
    /// Returns chunks without blocks, until the heap holds at most `keep` bytes.
    void trim(std::size_t keep = 0) noexcept { mallard_heap_trim(handle_, keep); }

    /// Makes the calling thread the owner of the heap. The previous owner must not be inside a call
    /// to the heap. Its next call must come after this one, synchronised for example by a mutex.
    void adopt() noexcept
        requires(!any_thread)
    {
        mallard_heap_adopt(handle_);
    }

    /// Sets new limits. If the heap already holds more memory than the new limit, it keeps that
    /// memory.
    void limit(const heap_options& to) noexcept
    {
        mallard_heap_limit(handle_, to.limit_soft, to.limit, to.met, to.context);
    }

    /// Returns whether `p` points into memory of this heap. O(1). Any thread may call this
    /// function.
    [[nodiscard]] bool owns(const void* p) const noexcept
    {
        return mallard_heap_owns(handle_, p) != 0;
    }

    /// Returns the statistics. O(bytes taken / 16 KiB). Members for which a heap keeps no count are
    /// 0.
    [[nodiscard]] heap_statistics stats() const noexcept
    {
        mallard_heap_statistics s{};
        s.struct_bytes = sizeof s;
        heap_statistics result;
        if (mallard_heap_stats(handle_, &s) != 0)
            return result;
        result.blocks_live = s.blocks_live;
        result.bytes_live = s.bytes_live;
        result.bytes_idle = s.bytes_taken - s.bytes_live;
        result.bytes_taken = s.bytes_taken;
        result.chunks = s.chunks;
        result.bytes_taken_max = s.bytes_taken_max;
        result.large_blocks = s.large_blocks;
        return result;
    }

    /// Returns the heap for the C functions of mallard/c/malloc.h.
    mallard_heap* handle() const noexcept { return handle_; }

private:
    static mallard_heap* make(const heap_options& options) noexcept
    {
        mallard_heap_options o{};
        o.struct_bytes = sizeof o;
        o.threads = any_thread ? MALLARD_HEAP_SHARED : MALLARD_HEAP_CONFINED;
        o.limit_soft_bytes = options.limit_soft;
        o.limit_bytes = options.limit;
        o.met = options.met;
        o.context = options.context;
        return mallard_heap_create(&o);
    }

    /// Returns a block that was never used, or null if there is no such block or if another thread
    /// owns the heap.
    [[gnu::always_inline]] void* take_fresh(std::size_t bytes) noexcept
    {
        detail::fresh_class const c = detail::fresh_classes[(bytes + 15) / 16];
        mallard_bump_range& from = fresh_->of_class[c.index];
        char* const block = from.next;
        if (block == from.end || fresh_->thread != __builtin_thread_pointer()) [[unlikely]]
            return nullptr;
        from.next = block + c.bytes;
        std::memset(block, 0, 8);
        return block;
    }

    mallard_heap* handle_;
    mallard_fresh* fresh_ = &detail::nothing_fresh;
};

/// A heap from which only one thread allocates.
using heap = basic_heap<sharing::one_thread>;
/// A heap from which any thread may allocate.
///
///     mallard::shared_heap cache({.limit = 1 << 30});
using shared_heap = basic_heap<sharing::any_thread>;

} // namespace mallard
