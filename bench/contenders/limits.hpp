// Hand-written lower bounds for the cost of a case. They are not real allocators: they never grow
// and check nothing, and their constructors must know how many blocks the case needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <new>
#include <span>
#include <string>

namespace mallard::bench {

/// One range of memory from malloc.
class region {
public:
    explicit region(std::size_t bytes) : begin_(static_cast<std::byte*>(std::malloc(bytes)))
    {
        if (begin_ == nullptr)
            throw std::bad_alloc();
    }
    region(const region&) = delete;
    region& operator=(const region&) = delete;
    ~region() { std::free(begin_); }

    std::byte* begin() const noexcept { return begin_; }

private:
    std::byte* begin_;
};

/// An intrusive free list. An allocation pops a free block. If the list is empty, it returns the
/// next block of one large range, without a test for the end of the range.
template <std::size_t Bytes>
class inline_list {
public:
    static std::string name() { return "limit/inline-list"; }

    explicit inline_list(std::size_t capacity) : region_(capacity * Bytes), cursor_(region_.begin())
    {
    }

    void* allocate() noexcept
    {
        if (head_ != nullptr) [[likely]] {
            node* const block = head_;
            head_ = block->next;
            return block;
        }
        void* const block = cursor_;
        cursor_ += Bytes;
        return block;
    }
    void deallocate(void* block) noexcept { head_ = ::new (block) node{head_}; }

private:
    struct node {
        node* next;
    };

    region region_;
    std::byte* cursor_;
    node* head_ = nullptr;
};

/// Allocates by moving a cursor, without a test for the end of the memory.
class bump {
public:
    static std::string name() { return "limit/bump"; }

    explicit bump(std::span<std::byte> initial, std::size_t capacity = 0)
        : region_(initial.empty() ? capacity : 0),
          begin_(initial.empty() ? region_.begin() : initial.data()), cursor_(begin_)
    {
    }

    void* allocate(std::size_t bytes, std::size_t align) noexcept
    {
        std::byte* const block =
            cursor_ + (-reinterpret_cast<std::uintptr_t>(cursor_) & (align - 1));
        cursor_ = block + bytes;
        return block;
    }
    void deallocate(void*, std::size_t, std::size_t) noexcept {}
    void reset() noexcept { cursor_ = begin_; }

    using mark_type = std::byte*;
    mark_type mark() const noexcept { return cursor_; }
    void rewind(mark_type to) noexcept { cursor_ = to; }

    bool try_expand(void* block, std::size_t from, std::size_t to, std::size_t) noexcept
    {
        if (static_cast<std::byte*>(block) + from != cursor_)
            return false;
        cursor_ += to - from;
        return true;
    }

private:
    region region_;
    std::byte* begin_;
    std::byte* cursor_;
};

/// Measures what a case costs without an allocator. Each thread has `capacity` blocks, which
/// `allocate` returns one after another. Frees are ignored, so a block that the caller keeps for
/// `capacity` allocations is returned a second time.
template <class Tag, std::size_t Bytes>
class recycler {
public:
    class circle {
    public:
        explicit circle(std::size_t capacity) : region_(capacity * Bytes), count_(capacity) {}

        void* allocate() noexcept
        {
            next_ = next_ + 1 == count_ ? 0 : next_ + 1;
            return region_.begin() + next_ * Bytes;
        }
        void deallocate(void*) noexcept {}

    private:
        region region_;
        std::size_t count_;
        std::size_t next_ = 0;
        char apart_[128] = {}; // padding: keeps the circles of threads on separate cache lines
    };

    static std::string name() { return std::string("limit/") + Tag::name; }

    recycler(std::size_t capacity, std::size_t threads)
    {
        for (std::size_t i = 0; i < threads; ++i)
            circles_.emplace_back(capacity);
    }

    circle& of_thread(std::size_t index) noexcept { return circles_[index]; }

private:
    std::deque<circle> circles_;
};

} // namespace mallard::bench
