// Reads the kernel's counts of memory and page faults of this process.
#pragma once

#include <bench/support/memory_use.hpp>

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>

namespace mallard::bench::lab {

inline std::size_t page_faults() noexcept
{
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return static_cast<std::size_t>(used.ru_minflt + used.ru_majflt);
}

/// Makes glibc's malloc keep freed memory from now on. Has no effect on other mallocs.
inline void keep_all_memory() noexcept
{
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1); // -1 means never, because no int is large enough
}

/// Measures by how much the resident memory exceeds the resident memory at construction.
class baseline {
public:
    baseline() : kib_((restart_peak_resident(), resident_kib())) {}

    /// Writes by how many KiB the peak and the current memory exceed the baseline.
    void report(std::span<double> peak_and_now) const
    {
        peak_and_now[0] = beyond(peak_resident_kib());
        peak_and_now[1] = beyond(resident_kib());
    }

private:
    double beyond(std::size_t kib) const
    {
        return std::max(0.0, static_cast<double>(kib) - static_cast<double>(kib_));
    }

    std::size_t kib_;
};

/// Bytes from the operating system, with all pages resident. Reserves no memory if 0 bytes are
/// requested.
class touched_pages {
public:
    explicit touched_pages(std::size_t bytes)
    {
        if (bytes == 0)
            return;
        void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (data == MAP_FAILED)
            throw std::bad_alloc();
        all_ = {static_cast<std::byte*>(data), bytes};
    }
    touched_pages(touched_pages const&) = delete;
    touched_pages& operator=(touched_pages const&) = delete;
    ~touched_pages()
    {
        if (!all_.empty())
            munmap(all_.data(), all_.size());
    }

    std::span<std::byte> all() const noexcept { return all_; }

private:
    std::span<std::byte> all_;
};

} // namespace mallard::bench::lab
