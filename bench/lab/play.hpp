// The code that Benchmarks II to IV of J. Lakos (ACCU 2017) share: the choice of a contender, the
// work on a block, and the limit of memory.
#pragma once

#include <bench/lab/task.hpp>

#include <sys/resource.h>

#include <algorithm>

namespace mallard::bench::lab {

/// Calls `f.template operator()<Memory>()` with the allocator type of `cast` that `who` names.
template <class Cast, class F>
void play(part who, Cast cast, F f)
{
    bool found = false;
    cast([&]<class Memory>(part candidate) {
        if (candidate != who || found)
            return;
        found = true;
        f.template operator()<Memory>();
    });
    if (!found)
        throw not_played("no program runs that strategy");
}

/// Increments the first byte of a block, as Lakos's program does. The byte may be uninitialised.
[[gnu::always_inline]] inline void* increment(void* block) noexcept
{
    auto* const first = static_cast<unsigned char*>(keep(block));
    *first = static_cast<unsigned char>(*first + 1);
    return keep(block);
}

/// Limits the memory of this process while the object exists.
class memory_limit {
public:
    enum class what : int {
        addresses = RLIMIT_AS, ///< address space, as with `ulimit -v`
        data = RLIMIT_DATA     ///< writable memory
    };

    memory_limit(what of, std::size_t kib) noexcept : of_(static_cast<int>(of))
    {
        getrlimit(resource(), &before_);
        rlimit now = before_;
        now.rlim_cur = std::min<rlim_t>(kib * 1024, before_.rlim_max);
        setrlimit(resource(), &now);
    }
    memory_limit(memory_limit const&) = delete;
    memory_limit& operator=(memory_limit const&) = delete;
    ~memory_limit() { setrlimit(resource(), &before_); }

    /// A limit that is safe on a machine with 24 GiB.
    static constexpr std::size_t most_kib = std::size_t{16} << 20;

private:
    __rlimit_resource resource() const noexcept { return static_cast<__rlimit_resource>(of_); }

    int of_;
    rlimit before_{};
};

} // namespace mallard::bench::lab
