// Arrays of the harness itself: indices, pointers, samples. The arrays come directly from the
// operating system, so that they do not warm or fragment a heap that is being measured. The bytes
// of the arrays are counted, so that they can be subtracted from the memory of a contender.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

namespace mallard::bench {

/// The current bytes in tables, and their peak.
struct table_bytes {
    static inline std::size_t now = 0;
    static inline std::size_t peak = 0;
};

/// An array of `count` zeroed values of `T`. All pages are resident.
template <class T>
class table {
public:
    explicit table(std::size_t count) : size_(count)
    {
        void* const data = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (data == MAP_FAILED)
            throw std::bad_alloc();
        data_ = static_cast<T*>(data);
        table_bytes::now += bytes();
        table_bytes::peak = std::max(table_bytes::peak, table_bytes::now);
    }
    table(table&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0))
    {
    }
    table& operator=(table&&) = delete;
    ~table()
    {
        if (data_ == nullptr)
            return;
        table_bytes::now -= bytes();
        munmap(data_, bytes());
    }

    T* begin() noexcept { return data_; }
    T* end() noexcept { return data_ + size_; }
    const T* begin() const noexcept { return data_; }
    const T* end() const noexcept { return data_ + size_; }
    std::size_t size() const noexcept { return size_; }
    T& operator[](std::size_t i) noexcept { return data_[i]; }
    const T& operator[](std::size_t i) const noexcept { return data_[i]; }

private:
    std::size_t bytes() const noexcept { return std::max<std::size_t>(size_, 1) * sizeof(T); }

    T* data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace mallard::bench
