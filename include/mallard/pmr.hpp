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
/// Final, so that calls on the object itself need no virtual dispatch. Equal
/// only to itself. Over an arena `deallocate` does nothing at all, as the
/// standard says of monotonic resources.
template <block_allocator A>
class pmr_resource final : public A, public std::pmr::memory_resource {
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

private:
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

/// Drop-ins for the standard's resources: over the default resource, or over
/// the upstream given to the constructor, whose exceptions pass unchanged.
namespace pmr {

using arena = pmr_resource<mallard::arena<pmr_source>>;         ///< monotonic_buffer_resource
using pool = pmr_resource<mallard::pool<pmr_source>>;           ///< one size; others go upstream
using multipool = pmr_resource<mallard::multipool<pmr_source>>; ///< unsynchronized_pool_resource

/// synchronized_pool_resource; needs the library.
using shared_multipool =
    pmr_resource<mallard::multipool<pmr_source, multipool_options{.threads = sync::thread_cached}>>;

} // namespace pmr
} // namespace mallard
