// The resources of libstdc++'s <memory_resource>. They are called through their abstract base, as
// the standard intends.
#pragma once

#include <bench/barrier.hpp>

#include <memory_resource>
#include <span>
#include <string>

namespace mallard::bench {

inline std::string std_pmr_name(const char* resource)
{
    return "libstdc++-pmr-" + std::to_string(_GLIBCXX_RELEASE) + "/" + resource;
}

/// A resource whose type the compiler does not know, because it is called through a pointer to its
/// base.
template <class Resource>
class behind_base {
public:
    template <class... Args>
    explicit behind_base(Args&&... args) : resource_(static_cast<Args&&>(args)...)
    {
    }

    Resource& resource() noexcept { return resource_; }

    template <class T>
    std::pmr::polymorphic_allocator<T> allocator() noexcept
    {
        return base_;
    }

    void* allocate(std::size_t bytes, std::size_t align = 16)
    {
        return base_->allocate(bytes, align);
    }
    void deallocate(void* block, std::size_t bytes, std::size_t align = 16)
    {
        base_->deallocate(block, bytes, align);
    }

private:
    Resource resource_;
    std::pmr::memory_resource* base_ = keep<std::pmr::memory_resource*>(&resource_);
};

/// Allocates blocks of one size from a contender that can allocate blocks of any size.
template <class Any, std::size_t Bytes>
class blocks_from {
public:
    static std::string name() { return Any::name(); }

    explicit blocks_from(std::size_t) {}

    void* allocate() { return any_.allocate(Bytes, alignment); }
    void deallocate(void* block) { any_.deallocate(block, Bytes, alignment); }

private:
    static constexpr std::size_t alignment = Bytes % 16 == 0 ? 16 : 8;

    Any any_;
};

class std_pool : public behind_base<std::pmr::unsynchronized_pool_resource> {
public:
    static std::string name() { return std_pmr_name("unsync-pool"); }
};

template <std::size_t Bytes>
using std_pool_blocks = blocks_from<std_pool, Bytes>;

/// The pool resource of the standard library that any thread may call.
class std_sync_pool : public behind_base<std::pmr::synchronized_pool_resource> {
public:
    static std::string name() { return std_pmr_name("sync-pool"); }
};

template <std::size_t Bytes>
using std_sync_pool_blocks = blocks_from<std_sync_pool, Bytes>;

class std_monotonic : public behind_base<std::pmr::monotonic_buffer_resource> {
public:
    static std::string name() { return std_pmr_name("monotonic"); }

    explicit std_monotonic(std::span<std::byte> initial, std::size_t = 0)
        : behind_base(initial.data(), initial.size())
    {
    }

    void reset() { resource().release(); }
};

} // namespace mallard::bench
