// Runs a workload and counts its allocations.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string_view>

namespace mallard::demo {

/// The counts of a workload's requests.
struct profile {
    std::uint64_t allocations = 0;
    std::uint64_t frees = 0;
    std::uint64_t bytes_total = 0;   ///< all allocated bytes
    std::uint64_t bytes_in_use = 0;  ///< not 0 at the end if blocks leaked
    std::uint64_t bytes_at_peak = 0; ///< peak of the bytes in use
};

/// A resource that counts calls of new and delete. The resource is slow, and is never used in a
/// timed run.
class counting_resource final : public std::pmr::memory_resource {
public:
    profile result() const noexcept { return sums_; }

private:
    void* do_allocate(std::size_t bytes, std::size_t align) override
    {
        void* const block = std::pmr::new_delete_resource()->allocate(bytes, align);
        sums_.allocations += 1;
        sums_.bytes_total += bytes;
        sums_.bytes_in_use += bytes;
        sums_.bytes_at_peak = std::max(sums_.bytes_at_peak, sums_.bytes_in_use);
        return block;
    }

    void do_deallocate(void* block, std::size_t bytes, std::size_t align) override
    {
        sums_.frees += 1;
        sums_.bytes_in_use -= bytes;
        std::pmr::new_delete_resource()->deallocate(block, bytes, align);
    }

    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override
    {
        return this == &other;
    }

    profile sums_;
};

/// Replaces a strategy, in order to count allocations. Its number is 0.
struct counted {
    static constexpr int number = 0;
    static constexpr std::string_view name = "counted";

    using resource_type = counting_resource;
    template <class T>
    using allocator_type = std::pmr::polymorphic_allocator<T>;

    template <class T, class F>
    static auto run(resource_type& resource, F f)
    {
        T container{allocator_type<std::byte>(&resource)};
        return f(container);
    }
};

} // namespace mallard::demo
