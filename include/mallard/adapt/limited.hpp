// An adaptor with a budget.
#pragma once

#include <mallard/adapt/counted.hpp>

namespace mallard {

/// The most that may be in use at once.
struct budget {
    std::size_t bytes = std::numeric_limits<std::size_t>::max();
    std::size_t blocks = std::numeric_limits<std::size_t>::max();
};

/// What is left of something: for one thread, or for several.
template <bool Shared>
class allowance {
public:
    constexpr explicit allowance(std::size_t most) noexcept : most_(most), left_(most) {}
    /// Its blocks go with a move, so what was moved from has spent nothing.
    constexpr allowance(allowance&& other) noexcept
        : most_(other.most_), left_(std::exchange(other.left_, other.most_))
    {
    }
    constexpr allowance& operator=(allowance&& other) noexcept
    {
        most_ = other.most_;
        left_ = std::exchange(other.left_, other.most_);
        return *this;
    }

    bool spend(std::size_t amount) noexcept
    {
        if (amount > left_) [[unlikely]]
            return false;
        left_ -= amount;
        return true;
    }
    void earn(std::size_t amount) noexcept { left_ += amount; }
    void refill() noexcept { left_ = most_; }
    std::size_t left() const noexcept { return left_; }
    std::size_t most() const noexcept { return most_; }

private:
    std::size_t most_;
    std::size_t left_;
};

template <>
class allowance<true> {
public:
    constexpr explicit allowance(std::size_t most) noexcept : most_(most), left_(most) {}

    /// By comparison and exchange: to subtract first and look afterwards would refuse
    /// others what is there. What is spent again was given back before.
    bool spend(std::size_t amount) noexcept
    {
        std::size_t left = left_.load(std::memory_order_relaxed);
        while (amount <= left)
            if (left_.compare_exchange_weak(left, left - amount, std::memory_order_acquire,
                                            std::memory_order_relaxed))
                return true;
        return false;
    }
    void earn(std::size_t amount) noexcept { left_.fetch_add(amount, std::memory_order_release); }
    void refill() noexcept { left_.store(most_, std::memory_order_relaxed); }
    std::size_t left() const noexcept { return left_.load(std::memory_order_relaxed); }
    std::size_t most() const noexcept { return most_; }

private:
    std::size_t most_;
    std::atomic<std::size_t> left_;
};

/// Refuses what would exceed a budget of bytes, of blocks, or of both. Exact: the
/// last byte of it can be had.
///
///     mallard::limited<mallard::multipool<>> memory({.bytes = 1 << 20});
///
///     mallard::limited<mallard::default_heap> half({.bytes = 1 << 29});
///     mallard::pool<mallard::ref<decltype(half)>> messages(64, 0, half);
///
/// Around an allocator, bytes are those its callers ask for. Around a source, those
/// it gives; the allocator above is told how much is left, and its last step of
/// growth is cut to that. What is freed can be had again.
///
/// `allocate` throws `std::bad_alloc`, `try_allocate` gives null, and `last_refusal`
/// says why in a line. One thread at a time, or as many as what it wraps allows with
/// `limited<A, sync::lock_free>`, which is not moved: at no moment do they together
/// hold more than the budget.
template <source Inner, sync Threads = sync::none>
    requires sync_of_numbers<Threads>
class limited : public adaptor<limited<Inner, Threads>, Inner> {
    using base = adaptor<limited, Inner>;
    friend base;
    static constexpr bool shared = has_atomic_numbers(Threads);

public:
    static constexpr bool any_thread = shared && shareable<Inner>;

    constexpr explicit limited(budget most) noexcept
        requires std::default_initializable<Inner>
        : bytes_(most.bytes), blocks_(most.blocks)
    {
    }
    template <class... Args>
    constexpr limited(budget most, std::in_place_t,
                      Args&&... args) noexcept(std::is_nothrow_constructible_v<Inner, Args...>)
        : base(std::in_place, std::forward<Args>(args)...), bytes_(most.bytes), blocks_(most.blocks)
    {
    }

    std::size_t bytes_left() const noexcept { return bytes_.left(); }
    std::size_t blocks_left() const noexcept { return blocks_.left(); }
    std::size_t most_to_take() const noexcept
    {
        if constexpr (bounded<Inner>)
            return std::min(bytes_left(), base::upstream().most_to_take());
        return bytes_left();
    }
    constexpr budget most() const noexcept { return {bytes_.most(), blocks_.most()}; }

    /// Why the last call that failed did, in a line that lives for ever; "" when
    /// none has. Of several threads' calls, one of the last.
    const char* last_refusal() const noexcept { return refusal_; }

private:
    template <bool Throws>
    [[gnu::always_inline]] chunk take_one(layout l) noexcept(!Throws)
    {
        if (!blocks_.spend(1)) [[unlikely]]
            return refused<Throws>("the budget of blocks is used up: free some, or allow more");
        if (!bytes_.spend(l.bytes)) [[unlikely]] {
            blocks_.earn(1);
            return refused<Throws>("the budget has fewer bytes left: free some, or allow more");
        }
        chunk const taken = base::template take_below_or<Throws>(l, [this, l]() noexcept {
            earn(l.bytes);
            refusal_ = "what is wrapped has refused, within the budget";
        });
        if constexpr (chunk_source<Inner>) // which may give more, as pages do
            if (taken.bytes > l.bytes && !bytes_.spend(taken.bytes - l.bytes)) [[unlikely]] {
                base::give_below(taken);
                earn(l.bytes);
                return refused<Throws>("the source gave more than was asked for, and is left");
            }
        return taken;
    }
    [[gnu::always_inline]] void give_one(chunk c) noexcept
    {
        std::size_t const bytes = c.bytes; // before another thread can have the chunk
        base::give_below(c);
        earn(bytes);
    }
    void forget_all() noexcept
    {
        bytes_.refill();
        blocks_.refill();
    }

    void earn(std::size_t bytes) noexcept
    {
        blocks_.earn(1);
        bytes_.earn(bytes);
    }

    template <bool Throws>
    chunk refused(const char* why) noexcept(!Throws)
    {
        refusal_ = why;
        return refuse<Throws>();
    }

    // left + what is in use  ==  most
    allowance<shared> bytes_;
    allowance<shared> blocks_;
    std::conditional_t<shared, std::atomic<const char*>, const char*> refusal_ = "";
};

} // namespace mallard
