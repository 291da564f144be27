// foonathan/memory: pools, pool collections, and its stack.
#pragma once

#include <bench/contenders/foonathan_blocks.hpp>
#include <bench/entrants.hpp>

#include <foonathan/memory/allocator_storage.hpp>
#include <foonathan/memory/memory_pool.hpp>
#include <foonathan/memory/memory_pool_collection.hpp>

#include <mutex>
#include <optional>
#include <span>

namespace mallard::bench {

inline std::string foonathan_name(const char* what)
{
    return "foonathan-" + std::to_string(FOONATHAN_MEMORY_VERSION_MAJOR) + "." +
           std::to_string(FOONATHAN_MEMORY_VERSION_MINOR) + "." +
           std::to_string(FOONATHAN_MEMORY_VERSION_PATCH) + "/" + what;
}

template <class Kind>
struct foonathan_kind;
template <>
struct foonathan_kind<fm::node_pool> {
    static constexpr const char* name = "node";
    static constexpr bool searches = false;
};
template <>
struct foonathan_kind<fm::small_node_pool> {
    static constexpr const char* name = "small-node";
    static constexpr bool searches = true; // a free searches for the chunk of the block
};
template <>
struct foonathan_kind<fm::array_pool> {
    static constexpr const char* name = "array";
    // A free searches an ordered list for the place of the block.
    static constexpr bool searches = true;
};

/// A foonathan pool. Its first chunk is about as large as the first chunk of a Mallard pool. Each
/// later chunk is twice as large as the chunk before, which is the library's default.
template <class Kind>
struct foonathan_pool {
    template <std::size_t Bytes>
    class of {
        using pool = fm::memory_pool<Kind>;

    public:
        static std::string name() { return foonathan_name(foonathan_kind<Kind>::name); }

        static const char* refusal(demand d)
        {
            bool const slow =
                foonathan_kind<Kind>::searches && d.frees == order::shuffled && d.live > 2000;
            return slow ? "a free searches its memory: minutes for so many" : nullptr;
        }

        explicit of(std::size_t) {}

        void* allocate() { return pool_.allocate_node(); }
        void deallocate(void* block) { pool_.deallocate_node(block); }

    private:
        pool pool_{Bytes, pool::min_block_size(Bytes, Bytes < 65536 ? 65536 / Bytes : 1)};
    };
};

/// The node pool in the library's own wrapper for several threads.
template <std::size_t Bytes>
class foonathan_locked_pool {
    using pool = fm::memory_pool<fm::node_pool>;

public:
    static std::string name() { return foonathan_name("node+mutex"); }

    explicit foonathan_locked_pool(std::size_t) {}

    void* allocate() { return pool_.allocate_node(Bytes, alignment); }
    void deallocate(void* block) { pool_.deallocate_node(block, Bytes, alignment); }

private:
    static constexpr std::size_t alignment = Bytes % 16 == 0 ? 16 : 8;

    fm::thread_safe_allocator<pool, std::mutex> pool_{
        pool(Bytes, pool::min_block_size(Bytes, Bytes < 65536 ? 65536 / Bytes : 1))};
};

/// Pools for one size each, where each size is a power of two. With a pool for each size, the
/// library would cut its chunks into thousands of ranges that are too small for the larger sizes.
class foonathan_collection {
public:
    static std::string name() { return foonathan_name("collection"); }

    void* allocate(std::size_t bytes, std::size_t = 16) { return pools_.allocate_node(bytes); }
    void deallocate(void* block, std::size_t bytes, std::size_t = 16)
    {
        pools_.deallocate_node(block, bytes);
    }

private:
    // The largest block that any case allocates is a table of a std::unordered_map.
    fm::memory_pool_collection<fm::node_pool, fm::log2_buckets> pools_{std::size_t{1} << 17,
                                                                       std::size_t{1} << 22};
};

/// foonathan's stack allocator. It uses the caller's buffer first, as the other arenas do.
class foonathan_stack {
public:
    static std::string name() { return foonathan_name("stack"); }

    explicit foonathan_stack(std::span<std::byte> initial, std::size_t = 0)
        : stack_(4096, initial), bottom_(stack_.top())
    {
    }

    void* allocate(std::size_t bytes, std::size_t align) { return stack_.allocate(bytes, align); }
    void deallocate(void*, std::size_t, std::size_t) noexcept {}
    void reset() { stack_.unwind(bottom_); }

    using mark_type = foonathan_stack_on_buffer::marker;
    mark_type mark() const noexcept { return stack_.top(); }
    void rewind(mark_type to) noexcept { stack_.unwind(to); }

private:
    foonathan_stack_on_buffer stack_;
    mark_type bottom_;
};

} // namespace mallard::bench
