// Boost.Pool's free lists, and Boost.Container's resources.
#pragma once

#include <bench/barrier.hpp>
#include <bench/contenders/std_pmr.hpp>
#include <bench/entrants.hpp>

#include <boost/container/pmr/monotonic_buffer_resource.hpp>
#include <boost/container/pmr/polymorphic_allocator.hpp>
#include <boost/container/pmr/unsynchronized_pool_resource.hpp>
#include <boost/pool/pool.hpp>
#include <boost/version.hpp>

namespace mallard::bench {

inline std::string boost_name(const char* library, const char* what)
{
    return std::string("boost-") + library + "-" + std::to_string(BOOST_VERSION / 100000) + "." +
           std::to_string(BOOST_VERSION / 100 % 1000) + what;
}

template <std::size_t Bytes>
class boost_pool {
public:
    static std::string name() { return boost_name("pool", ""); }

    explicit boost_pool(std::size_t) {}

    void* allocate() { return pool_.malloc(); }
    void deallocate(void* block) { pool_.free(block); }

private:
    boost::pool<> pool_{Bytes};
};

/// Boost's pool with an ordered free list. Each free searches the list for the place of the block.
template <std::size_t Bytes>
class boost_ordered_pool {
public:
    static std::string name() { return boost_name("pool", "/ordered"); }

    static const char* refusal(demand d)
    {
        // Frees in reverse order are just as slow if a later chunk has lower addresses.
        return d.live > 2000 ? "a free searches the free list: minutes for so many" : nullptr;
    }

    explicit boost_ordered_pool(std::size_t) {}

    void* allocate() { return pool_.ordered_malloc(); }
    void deallocate(void* block) { pool_.ordered_free(block); }

private:
    boost::pool<> pool_{Bytes};
};

/// Calls a resource through the abstract base class of Boost.Container. That class is not
/// std::pmr::memory_resource.
template <class Resource>
class behind_boost_base {
public:
    template <class... Args>
    explicit behind_boost_base(Args&&... args) : resource_(static_cast<Args&&>(args)...)
    {
    }

    Resource& resource() noexcept { return resource_; }

    template <class T>
    boost::container::pmr::polymorphic_allocator<T> allocator() noexcept
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
    boost::container::pmr::memory_resource* base_ =
        keep<boost::container::pmr::memory_resource*>(&resource_);
};

class boost_unsync_pool
    : public behind_boost_base<boost::container::pmr::unsynchronized_pool_resource> {
public:
    static std::string name() { return boost_name("container", "/unsync-pool"); }
};

template <std::size_t Bytes>
using boost_pool_resource_blocks = blocks_from<boost_unsync_pool, Bytes>;

class boost_monotonic : public behind_boost_base<boost::container::pmr::monotonic_buffer_resource> {
public:
    static std::string name() { return boost_name("container", "/monotonic"); }

    explicit boost_monotonic(std::span<std::byte> initial, std::size_t = 0)
        : behind_boost_base(initial.data(), initial.size())
    {
    }

    void reset() { resource().release(); }
};

} // namespace mallard::bench
