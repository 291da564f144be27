// A magazine that another thread can shut while its own thread goes on: the two
// comparisons that a call makes anyway then fail.
#pragma once

#include <mallard/detail/pool/magazine.hpp>

#include <atomic>
#include <cstdint>

namespace mallard {

/// A word that one thread may read while another writes it, of which it then makes
/// no use: an ordinary word to the processor.
template <class T>
class relaxed {
public:
    constexpr relaxed(T value) noexcept : value_(value) {}
    constexpr relaxed(relaxed&& other) noexcept : value_(static_cast<T>(other)) {}

    constexpr operator T() const noexcept
    {
        return std::is_constant_evaluated() ? value_ : __atomic_load_n(&value_, __ATOMIC_RELAXED);
    }
    constexpr relaxed& operator=(T value) noexcept
    {
        if (std::is_constant_evaluated())
            value_ = value;
        else
            __atomic_store_n(&value_, value, __ATOMIC_RELAXED);
        return *this;
    }

private:
    T value_;
};

/// `try_pop` and `try_push` are for its own thread at any time, between
/// `thread_front::announce` and `leave`; all else is for whom the front is.
///
/// Who shuts it writes the two bounds, and then waits until the thread is outside. A
/// thread that has seen an old bound is waited for; one that sees a new one turns
/// back. It has read the top by then, perhaps while that was written.
class gated_magazine : public basic_magazine<relaxed<void**>> {
    using base = basic_magazine<relaxed<void**>>;
    using address = std::uintptr_t;

public:
    /// Null when it is empty or shut.
    [[gnu::always_inline]] void* try_pop() noexcept
    {
        address const bottom = bottom_.load(std::memory_order_acquire);
        void** const at = top();
        if (reinterpret_cast<address>(at) <= bottom) [[unlikely]]
            return nullptr;
        set_top(at - 1);
        void* const block = at[-1];
        if (block == nullptr)
            __builtin_unreachable();
        return block;
    }

    /// False when it is full or shut.
    [[gnu::always_inline]] bool try_push(void* block) noexcept
    {
        address const end = end_.load(std::memory_order_acquire);
        void** const at = top();
        if (reinterpret_cast<address>(at) >= end) [[unlikely]]
            return false;
        set_top(at + 1);
        *at = block;
        return true;
    }

    void shut() noexcept
    {
        bottom_.store(~address{0}, std::memory_order_relaxed);
        end_.store(0, std::memory_order_relaxed);
    }
    void open() noexcept
    {
        bottom_.store(reinterpret_cast<address>(array()), std::memory_order_release);
        end_.store(reinterpret_cast<address>(array() + capacity()), std::memory_order_release);
    }

    /// While it is open.
    chunk move_to(chunk memory, std::size_t entries) noexcept
    {
        chunk const left = base::move_to(memory, entries);
        open();
        return left;
    }

    /// Without an array; to be opened or to be thrown away. Gives what it had.
    chunk leave_array() noexcept
    {
        chunk const left = memory();
        base::operator=(base());
        return left;
    }

private:
    std::atomic<address> bottom_{0}; // top is above: something to pop
    std::atomic<address> end_{0};    // top is below: room to push
};

} // namespace mallard
