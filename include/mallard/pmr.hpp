// Allocators that are a std::pmr::memory_resource too, for code that expects a pointer to a
// resource.
#pragma once

#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

#include <memory_resource>

namespace mallard {

/// An allocator `A` that is a `std::pmr::memory_resource` as well. A `pmr_resource` has all members
/// of `A`, and `std::pmr` containers accept a pointer to it.
///
///     mallard::pmr_resource<mallard::arena<>> scratch;
///     std::pmr::vector<int> v(&scratch);
///
/// Calls with a `layout` are direct, and calls with bytes and alignment, as in the base class, are
/// virtual. A resource is equal only to itself. Over an arena, `deallocate` does nothing, as in
/// `std::pmr::monotonic_buffer_resource`. Classes may derive from `pmr_resource`, as they may from
/// the standard's resources.
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

    /// Returns the resource from which this one allocates. This function exists only if the source
    /// is a memory resource.
    std::pmr::memory_resource* upstream_resource() const noexcept
        requires requires(const A& a) { a.upstream().resource(); }
    {
        return A::upstream().resource();
    }

protected:
    /// Allocates from the allocator `A`, or throws.
    void* do_allocate(std::size_t bytes, std::size_t align) override
    {
        return A::allocate(layout(bytes, align));
    }

    /// Frees a block. Over an arena, does nothing.
    void do_deallocate([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes,
                       [[maybe_unused]] std::size_t align) override
    {
        if constexpr (!rewindable<A>)
            A::deallocate(block, layout(bytes, align));
    }

    /// Returns whether `other` is this object.
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override
    {
        return this == &other;
    }
};

/// Replacements for the standard's memory resources, with the same constructors. Each resource here
/// allocates from the default resource, or from the upstream resource given to the constructor.
/// Exceptions of the upstream resource pass through unchanged. docs/guide/pmr.md lists the
/// differences.
namespace pmr {

/// Replaces `std::pmr::monotonic_buffer_resource`.
///
///     mallard::pmr::arena scratch(buffer, sizeof buffer);
///     std::pmr::vector<int> v(&scratch);
///
/// The first chunk holds at least `initial_size` bytes. After a buffer of the caller, the first
/// chunk is four times as large as the buffer. No chunk is smaller than 1 KiB. Each chunk is larger
/// than the one before, up to 16 MiB, or up to the size of the first chunk if that is larger.
class arena : public pmr_resource<
                  mallard::arena<pmr_source, arena_options{.grow = growth::at_run_time()}>> {
    static constexpr growth usual = arena_options{}.grow;

public:
    /// Makes an arena over the default resource, with the default growth rule.
    arena() : arena(usual) {}
    /// Makes an arena over `upstream`, with the default growth rule.
    explicit arena(std::pmr::memory_resource* upstream) : pmr_resource(usual, upstream) {}
    /// Makes an arena whose chunk requests follow the growth rule `rule`.
    explicit arena(growth rule,
                   std::pmr::memory_resource* upstream = std::pmr::get_default_resource())
        : pmr_resource(rule, upstream)
    {
    }
    /// Makes an arena whose first chunk holds at least `initial_size` bytes.
    explicit arena(std::size_t initial_size,
                   std::pmr::memory_resource* upstream = std::pmr::get_default_resource())
        : pmr_resource(beginning_with(arena_chunk::bytes_for(initial_size)), upstream)
    {
    }
    /// Makes an arena that allocates from a buffer of the caller first, and then from `upstream`.
    arena(void* buffer, std::size_t bytes,
          std::pmr::memory_resource* upstream = std::pmr::get_default_resource())
        : arena(std::span(static_cast<std::byte*>(buffer), bytes), upstream)
    {
    }
    /// Makes an arena that allocates from a buffer of the caller first, and then from `upstream`.
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

/// Allocates blocks of one size. Requests of other sizes go to the upstream resource.
///
///     mallard::pmr::pool nodes(64);
using pool = pmr_resource<mallard::pool<pmr_source>>;

/// The base class of `multipool` and `shared_multipool`, with the constructors and members of the
/// standard's pool resources.
///
/// `pool_options` are accepted but have no effect. `options()` returns the actual values.
template <class Multipool>
class pool_resource : public pmr_resource<Multipool> {
public:
    using pmr_resource<Multipool>::pmr_resource;
    /// Makes a resource over the default resource.
    pool_resource() = default;
    /// Accepts and ignores the options of the standard's pool resources.
    explicit pool_resource(const std::pmr::pool_options&) : pool_resource() {}
    /// Accepts and ignores the options, and allocates from `upstream`.
    pool_resource(const std::pmr::pool_options&, std::pmr::memory_resource* upstream)
        : pool_resource(upstream)
    {
    }

    /// Returns the size of the largest block that comes from a pool, and how many of the smallest
    /// blocks a chunk may hold.
    static constexpr std::pmr::pool_options options() noexcept
    {
        return {.max_blocks_per_chunk = multipool_options{}.grow.max / size_class::bytes(0),
                .largest_required_pool_block = Multipool::largest()};
    }
};

/// Replaces `std::pmr::unsynchronized_pool_resource`. Only one thread at a time may use it.
///
///     mallard::pmr::multipool memory;
///     std::pmr::map<int, std::pmr::string> names(&memory);
class multipool : public pool_resource<mallard::multipool<pmr_source>> {
public:
    using pool_resource::pool_resource; ///< the constructors of the standard's class
};

/// Replaces `std::pmr::synchronized_pool_resource`. Any number of threads may use it. Needs the
/// compiled library.
///
///     static mallard::pmr::shared_multipool memory;
class shared_multipool
    : public pool_resource<
          mallard::multipool<pmr_source, multipool_options{.threads = sync::thread_cached}>> {
public:
    using pool_resource::pool_resource; ///< the constructors of the standard's class
};

} // namespace pmr
} // namespace mallard
