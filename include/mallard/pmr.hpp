// The binding by abstract base: for code that takes a std::pmr::memory_resource*.
#pragma once

#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <mallard/pool.hpp>

#include <memory_resource>

namespace mallard {

/// An allocator that is a `std::pmr::memory_resource` as well: everything `A`
/// can do, and a pointer to it is what `std::pmr` containers take.
///
///     mallard::pmr_resource<mallard::arena<>> scratch;
///     std::pmr::vector<int> v(&scratch);
///
/// A call with a `layout` is direct; one with bytes, or through the base, is virtual. Equal
/// only to itself. Over an arena `deallocate` does nothing at all, as the standard says of
/// monotonic resources. May be derived from, like the standard's resources.
template <block_allocator A>
class pmr_resource : public A, public std::pmr::memory_resource {
public:
    using A::A;
    pmr_resource() = default;
    pmr_resource(const pmr_resource&) = delete;
    pmr_resource& operator=(const pmr_resource&) = delete;

    using A::allocate;
    using A::deallocate;
    using std::pmr::memory_resource::allocate;
    using std::pmr::memory_resource::deallocate;

    /// The upstream, where that is a memory resource.
    std::pmr::memory_resource* upstream_resource() const noexcept
        requires requires(const A& a) { a.upstream().resource(); }
    {
        return A::upstream().resource();
    }

protected:
    void* do_allocate(std::size_t bytes, std::size_t align) override
    {
        return A::allocate(layout(bytes, align));
    }

    void do_deallocate([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes,
                       [[maybe_unused]] std::size_t align) override
    {
        if constexpr (!rewindable<A>)
            A::deallocate(block, layout(bytes, align));
    }

    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override
    {
        return this == &other;
    }
};

/// Drop-ins for the standard's resources, with their constructors: over the default resource,
/// or over the upstream given to the constructor, whose exceptions pass unchanged.
/// docs/guide/pmr.md lists what differs.
namespace pmr {

/// Replaces `std::pmr::monotonic_buffer_resource`.
///
/// The first chunk holds at least `initial_size` bytes. After a buffer of the caller, the next
/// chunk is four times as large as the buffer. No chunk is smaller than 1 KiB. Each chunk is larger
/// than the one before, up to 16 MiB, or up to the size of the first chunk if that is larger.
class arena : public pmr_resource<
                  mallard::arena<pmr_source, arena_options{.grow = growth::at_run_time()}>> {
    static constexpr growth usual = arena_options{}.grow;

public:
    arena() : arena(usual) {}
    explicit arena(std::pmr::memory_resource* upstream) : pmr_resource(usual, upstream) {}
    explicit arena(growth rule,
                   std::pmr::memory_resource* upstream = std::pmr::get_default_resource())
        : pmr_resource(rule, upstream)
    {
    }
    explicit arena(std::size_t initial_size,
                   std::pmr::memory_resource* upstream = std::pmr::get_default_resource())
        : pmr_resource(beginning_with(arena_chunk::bytes_for(initial_size)), upstream)
    {
    }
    arena(void* buffer, std::size_t bytes,
          std::pmr::memory_resource* upstream = std::pmr::get_default_resource())
        : arena(std::span(static_cast<std::byte*>(buffer), bytes), upstream)
    {
    }
    explicit arena(std::span<std::byte> buffer,
                   std::pmr::memory_resource* upstream = std::pmr::get_default_resource())
        : pmr_resource(buffer,
                       beginning_with(std::max(std::min(usual.after(buffer.size()), usual.max),
                                               arena_chunk::bytes_for(buffer.size()))),
                       upstream)
    {
    }

private:
    static constexpr growth beginning_with(std::size_t bytes) noexcept
    {
        growth rule = usual;
        rule.first = std::max(bytes, usual.first);
        rule.max = std::max(rule.first, usual.max);
        return rule;
    }
};

using pool = pmr_resource<mallard::pool<pmr_source>>; ///< one size; others go upstream

/// Base of `multipool` and `shared_multipool`: constructors and members of the standard's pool
/// resources.
///
/// `pool_options` are accepted and have no effect: `options()` returns the actual values.
template <class Multipool>
class pool_resource : public pmr_resource<Multipool> {
public:
    using pmr_resource<Multipool>::pmr_resource;
    pool_resource() = default;
    explicit pool_resource(const std::pmr::pool_options&) : pool_resource() {}
    pool_resource(const std::pmr::pool_options&, std::pmr::memory_resource* upstream)
        : pool_resource(upstream)
    {
    }

    /// The largest block that is pooled, and how many of the smallest one chunk may hold.
    static constexpr std::pmr::pool_options options() noexcept
    {
        return {.max_blocks_per_chunk = multipool_options{}.grow.max / size_class::bytes(0),
                .largest_required_pool_block = Multipool::largest()};
    }
};

/// Replaces `std::pmr::unsynchronized_pool_resource`.
class multipool : public pool_resource<mallard::multipool<pmr_source>> {
public:
    using pool_resource::pool_resource;
};

/// synchronized_pool_resource; needs the library.
class shared_multipool
    : public pool_resource<
          mallard::multipool<pmr_source, multipool_options{.threads = sync::thread_cached}>> {
public:
    using pool_resource::pool_resource;
};

} // namespace pmr
} // namespace mallard
