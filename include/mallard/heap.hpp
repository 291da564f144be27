// Heaps: parts of malloc that can be freed all at once.
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

/// Who allocates from a heap. Any thread frees.
enum class sharing {
    one_thread, ///< the one that made it, or adopted it last: no lock
    any_thread  ///< one after the other
};

/// Of bytes taken: chunks, and large blocks. 0: no limit.
struct heap_options {
    std::size_t limit_soft = 0; ///< `met` is called above it, once until a quarter less is taken
    std::size_t limit = 0;      ///< what would exceed it is refused, after a call of `met`
    /// `void met(void* context, std::size_t held, std::size_t limit)`: called by the thread
    /// that met a limit. It may use the heap, but for `reset` and `release`, and throws
    /// nothing. What was refused is tried again, once: something may have been freed.
    mallard_limit_met met = nullptr;
    void* context = nullptr;
};

struct heap_statistics : statistics {
    std::size_t bytes_taken_max = 0;
    std::size_t large_blocks = 0; ///< apart from chunks
};

namespace detail {

/// Where blocks of at most 16 i bytes are among the fresh ones, and how large.
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

/// What a heap has that is none, or that another library made.
inline constinit mallard_fresh nothing_fresh{};

} // namespace detail

/// Blocks of any size, freed one by one by any thread, or all at once.
///
///     mallard::heap request;
///     void* block = request.allocate(100);
///     std::free(block);      // in any thread; or request.deallocate(block)
///     request.release();     // whatever is left
///
/// A part of the malloc of libmallard-malloc.so (mallard::malloc) or libmallard-malloc.a
/// (mallard::malloc_static): a program that links neither does not link.
///
/// It has its memory for itself, in chunks of 64 KiB and twice as much each time up to 4 MiB;
/// blocks above 1 MiB lie apart. `release` gives all of it to the rest of the program, and
/// `reset` keeps the chunks, in a time that does not depend on the number of blocks. A heap
/// without blocks takes less than 4 KiB; thousands are no burden. A block is at most a
/// quarter larger than asked for, and 16 bytes at least. A class of sizes takes 16 KiB or
/// more of a chunk at a time, and touches its pages as they are needed: for a few blocks of
/// each of many sizes a `multipool` is smaller.
///
/// `realloc` and `malloc_usable_size` take its blocks too, and a block stays in its heap.
///
/// A `heap` is with one thread; `adopt` makes the caller that one. All calls are its alone,
/// but for `deallocate` and `owns`, which are any thread's, as is `free`; another that asks
/// for memory stops the process. With a `shared_heap` all calls are any thread's. What other
/// threads do with blocks is over when `reset`, `release` or the end of the heap begins.
///
/// `allocate` throws `std::bad_alloc`, `try_allocate` gives null: when the system or the
/// limit refuses, and always in a heap that was moved from. A failed call has changed nothing.
template <sharing Threads>
class basic_heap {
public:
    static constexpr bool any_thread = Threads == sharing::any_thread;

    /// Throws `std::bad_alloc` if there is no memory for it.
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

    [[nodiscard, gnu::always_inline]] void* allocate(layout l)
    {
        void* const block = try_allocate(l);
        if (block == nullptr) [[unlikely]]
            throw_bad_alloc();
        return block;
    }
    [[nodiscard, gnu::always_inline]] void* try_allocate(layout l) noexcept
    {
        if (l.align > alignof(std::max_align_t)) [[unlikely]]
            return mallard_heap_allocate_aligned(handle_, l.bytes, l.align);
        if (!any_thread && l.bytes <= detail::fresh_bytes_max) [[likely]]
            if (void* const block = take_fresh(l.bytes)) [[likely]]
                return block;
        return mallard_heap_allocate(handle_, l.bytes);
    }

    /// A block of this heap; or of any other, or of malloc; or null. Any thread.
    void deallocate(void* block) noexcept { mallard_heap_free(handle_, block); }
    /// The size is not needed: a wrong one does no harm.
    void deallocate(void* block, layout) noexcept { deallocate(block); }

    /// Frees every block and keeps the chunks.
    void reset() noexcept { mallard_heap_reset(handle_); }
    /// Frees every block and gives all memory back to malloc.
    void release() noexcept { mallard_heap_release(handle_); }
    /// Gives back chunks without a block, as long as more than `keep` bytes are taken.
    void trim(std::size_t keep = 0) noexcept { mallard_heap_trim(handle_, keep); }

    /// The heap is with this thread from now on. For the one that it was with it is as if it
    /// were moved away: in no call of the heap meanwhile, and aware of it before its next.
    void adopt() noexcept
        requires(!any_thread)
    {
        mallard_heap_adopt(handle_);
    }

    /// New ones; what is taken already stays.
    void limit(const heap_options& to) noexcept
    {
        mallard_heap_limit(handle_, to.limit_soft, to.limit, to.met, to.context);
    }

    /// Whether `p` points into memory of this heap. O(1); any thread.
    [[nodiscard]] bool owns(const void* p) const noexcept
    {
        return mallard_heap_owns(handle_, p) != 0;
    }

    /// Counted when asked: O(bytes taken / 16 KiB). What it does not know is 0.
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

    /// For the functions of malloc.h.
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

    /// Never given out before; null: there is none, or it is not this thread's to take.
    [[gnu::always_inline]] void* take_fresh(std::size_t bytes) noexcept
    {
        detail::fresh_class const c = detail::fresh_classes[(bytes + 15) / 16];
        mallard_stretch& from = fresh_->of_class[c.index];
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

using heap = basic_heap<sharing::one_thread>;
using shared_heap = basic_heap<sharing::any_thread>;

} // namespace mallard
