// The allocators for the strategies of J. Lakos (ACCU 2017), for every library that has them. Each
// class is constructed from a `budget`, has an allocator for containers and single blocks, and can
// free all memory together.
#pragma once

#include <bench/barrier.hpp>
#include <bench/contenders/foonathan_blocks.hpp>

#include <mallard/allocator.hpp>
#include <mallard/pmr.hpp>

#include <boost/container/pmr/monotonic_buffer_resource.hpp>
#include <boost/container/pmr/polymorphic_allocator.hpp>
#include <boost/container/pmr/unsynchronized_pool_resource.hpp>
#include <foonathan/memory/memory_pool_collection.hpp>

#include <memory_resource>
#include <scoped_allocator>
#include <span>

namespace mallard::bench::lab {

/// The memory that an allocator may begin with.
struct budget {
    std::span<std::byte> buffer; ///< used before memory from the heap
    std::size_t largest = 0;     ///< size in bytes of the largest block that will be requested
};

/// Strategy AS1: the heap, as a type parameter of the containers.
class heap_typed {
public:
    explicit heap_typed(budget) {}

    std::allocator<std::byte> allocator() noexcept { return {}; }
    void* allocate(std::size_t bytes) { return allocator().allocate(bytes); }
    void deallocate(void* block, std::size_t bytes)
    {
        allocator().deallocate(static_cast<std::byte*>(block), bytes);
    }
    void release() noexcept {}
};

/// A resource whose type the compiler does not know, because it is called through a pointer to its
/// base.
template <class Base, template <class> class Allocator>
class behind {
public:
    explicit behind(Base& resource) : base_(keep<Base*>(&resource)) {}

    Allocator<std::byte> allocator() noexcept { return base_; }
    void* allocate(std::size_t bytes) { return base_->allocate(bytes, 8); }
    void deallocate(void* block, std::size_t bytes) { base_->deallocate(block, bytes, 8); }

private:
    Base* base_;
};
using behind_std = behind<std::pmr::memory_resource, std::pmr::polymorphic_allocator>;
using behind_boost =
    behind<boost::container::pmr::memory_resource, boost::container::pmr::polymorphic_allocator>;

/// Strategy AS2: the heap, called through an abstract base class.
class heap_based : public behind_std {
public:
    explicit heap_based(budget) : behind_std(*std::pmr::new_delete_resource()) {}
    void release() noexcept {}
};

/// Makes Mallard's allocators over the heap. An arena begins with the buffer, and so does a
/// multipool over an arena.
template <class A>
A made_of(budget from)
{
    if constexpr (std::constructible_from<A, std::span<std::byte>>)
        return A(from.buffer);
    else if constexpr (requires { A(arena<>(from.buffer)); })
        return A(arena<>(from.buffer));
    else
        return A();
}

template <class A>
class mallard_typed {
public:
    explicit mallard_typed(budget from) : memory_(made_of<A>(from)) {}

    mallard::allocator<std::byte, A> allocator() noexcept { return memory_; }
    void* allocate(std::size_t bytes) { return memory_.allocate({bytes, 8}); }
    void deallocate(void* block, std::size_t bytes) { memory_.deallocate(block, {bytes, 8}); }
    void release() noexcept { memory_.release(); }
    void reset() noexcept { memory_.reset(); }

private:
    A memory_;
};

// Holds a resource. This is a base class, so that the resource is constructed before the other base
// class that points to the resource.
template <class Resource>
struct holder {
    Resource memory;
};

template <class A>
class mallard_based : holder<pmr_resource<A>>, public behind_std {
    using held = holder<pmr_resource<A>>;

public:
    explicit mallard_based(budget from)
        : held{made_of<pmr_resource<A>>(from)}, behind_std(held::memory)
    {
    }
    void release() noexcept { held::memory.release(); }
    void reset() noexcept { held::memory.reset(); }
};

// The standard's resources, and Boost's resources of the same names.
struct of_std {
    using behind = behind_std;
    using monotonic = std::pmr::monotonic_buffer_resource;
    using pool = std::pmr::unsynchronized_pool_resource;
};
struct of_boost {
    using behind = behind_boost;
    using monotonic = boost::container::pmr::monotonic_buffer_resource;
    using pool = boost::container::pmr::unsynchronized_pool_resource;
};

template <class Library>
class monotonic_of : holder<typename Library::monotonic>, public Library::behind {
    using held = holder<typename Library::monotonic>;

public:
    explicit monotonic_of(budget from)
        : held{typename Library::monotonic(from.buffer.data(), from.buffer.size())},
          Library::behind(held::memory)
    {
    }
    void release() { held::memory.release(); }
};

template <class Library>
class pool_of : holder<typename Library::pool>, public Library::behind {
    using held = holder<typename Library::pool>;

public:
    explicit pool_of(budget) : Library::behind(held::memory) {}
    void release() { held::memory.release(); }
};

template <class Library>
class pool_over_monotonic_of : holder<typename Library::monotonic>,
                               holder<typename Library::pool>,
                               public Library::behind {
    using below = holder<typename Library::monotonic>;
    using held = holder<typename Library::pool>;

public:
    explicit pool_over_monotonic_of(budget from)
        : below{typename Library::monotonic(from.buffer.data(), from.buffer.size())},
          held{typename Library::pool(std::addressof(below::memory))}, Library::behind(held::memory)
    {
    }
    void release()
    {
        held::memory.release();
        below::memory.release();
    }
};

/// An allocator that containers pass on to their elements, for libraries that have no such
/// allocator.
template <class T, class Memory>
class handing_on {
public:
    using value_type = T;

    handing_on(Memory& from) noexcept : from_(&from) {}
    template <class U>
    handing_on(handing_on<U, Memory> const& other) noexcept : from_(other.from())
    {
    }
    T* allocate(std::size_t count) { return static_cast<T*>(from_->allocate(count * sizeof(T))); }
    void deallocate(T* first, std::size_t count) { from_->deallocate(first, count * sizeof(T)); }

    template <class U, class... Args>
    void construct(U* at, Args&&... args)
    {
        std::uninitialized_construct_using_allocator(at, *this, std::forward<Args>(args)...);
    }
    Memory* from() const noexcept { return from_; }

    template <class U>
    bool operator==(handing_on<U, Memory> const& other) const noexcept
    {
        return from_ == other.from();
    }

private:
    Memory* from_;
};

/// foonathan's stack. It uses the buffer first, then heap blocks, each twice as large as the
/// previous one. A request that is larger than the next block fails, so the first block is made
/// large enough for the largest request.
class foonathan_stack {
public:
    explicit foonathan_stack(budget from)
        : stack_(std::max<std::size_t>(4096, 2 * from.largest), from.buffer)
    {
    }

    handing_on<std::byte, foonathan_stack> allocator() noexcept { return *this; }
    void* allocate(std::size_t bytes) { return stack_.allocate(bytes, 8); }
    void deallocate(void*, std::size_t) noexcept {}
    void release() noexcept {} // the destructor releases the memory

private:
    foonathan_stack_on_buffer stack_;
};

/// foonathan's pools, one for each power of two up to 4 KiB, as in Lakos's benchmark. The heap
/// serves larger requests.
class foonathan_pools {
public:
    explicit foonathan_pools(budget) {}
    foonathan_pools(foonathan_pools const&) = delete;
    foonathan_pools& operator=(foonathan_pools const&) = delete;

    handing_on<std::byte, foonathan_pools> allocator() noexcept { return *this; }
    void* allocate(std::size_t bytes)
    {
        return bytes <= largest ? pools_.allocate_node(bytes) : heap_.allocate(bytes);
    }
    void deallocate(void* block, std::size_t bytes)
    {
        if (bytes <= largest)
            pools_.deallocate_node(block, bytes);
        else
            heap_.deallocate(block, bytes);
    }
    void release() noexcept {} // the destructor releases the memory

private:
    static constexpr std::size_t largest = 4096;

    heap_typed heap_{budget{}};

    fm::memory_pool_collection<fm::node_pool, fm::log2_buckets> pools_{largest,
                                                                       std::size_t{1} << 16};
};

} // namespace mallard::bench::lab
