// Runs a workload and records every allocation. The density, variation and utilisation of J.
// Lakos's talk on local allocators (D, V and U) are computed from the records.
#pragma once

#include <mallard/detail/base/size_class.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <string_view>

namespace mallard::demo {

/// Counts of a workload's requests.
struct profile {
    std::uint64_t allocations = 0;
    std::uint64_t frees = 0;
    std::uint64_t bytes_total = 0;   ///< all allocated bytes
    std::uint64_t bytes_in_use = 0;  ///< not 0 at the end if blocks leaked
    std::uint64_t bytes_at_peak = 0; ///< the most bytes in use at once
    std::uint64_t sizes = 0;         ///< number of different sizes
    double class_entropy = 0;        ///< in bits; 0: all blocks in one size class
};

/// A resource that counts calls of new and delete. The resource is slow, and is never timed.
class counting_resource final : public std::pmr::memory_resource {
public:
    profile result() const
    {
        profile done = sums_;
        done.sizes = by_size_.size();
        std::map<std::size_t, double> by_class;
        for (const auto& [bytes, count] : by_size_)
            by_class[size_class::of(bytes)] += count / static_cast<double>(sums_.allocations);
        for (const auto& [index, share] : by_class)
            done.class_entropy -= share * std::log2(share);
        return done;
    }

private:
    void* do_allocate(std::size_t bytes, std::size_t align) override
    {
        void* const block = std::pmr::new_delete_resource()->allocate(bytes, align);
        sums_.allocations += 1;
        sums_.bytes_total += bytes;
        sums_.bytes_in_use += bytes;
        sums_.bytes_at_peak = std::max(sums_.bytes_at_peak, sums_.bytes_in_use);
        by_size_[bytes] += 1;
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
    std::map<std::size_t, double> by_size_;
};

/// Takes the place of a strategy, and counts allocations. Its number is 0.
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
