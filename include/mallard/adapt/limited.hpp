// An adaptor that limits the memory in use.
#pragma once

#include <mallard/adapt/counted.hpp>

namespace mallard {

/// Limits of the bytes and blocks in use at the same time. A member without a value means no limit.
struct budget {
    std::size_t bytes = std::numeric_limits<std::size_t>::max();  ///< limit of bytes in use
    std::size_t blocks = std::numeric_limits<std::size_t>::max(); ///< limit of blocks in use
};

/// A limit of bytes or of blocks, and the amount that is left.
template <bool Shared>
class quota {
public:
    /// Makes an unused quota of `most` bytes or blocks.
    constexpr explicit quota(std::size_t most) noexcept : most_(most), left_(most) {}
    /// Moves the used amount to this object. The moved-from quota is unused.
    constexpr quota(quota&& other) noexcept
        : most_(other.most_), left_(std::exchange(other.left_, other.most_))
    {
    }
    constexpr quota& operator=(quota&& other) noexcept
    {
        most_ = other.most_;
        left_ = std::exchange(other.left_, other.most_);
        return *this;
    }

    /// Counts `amount` as used. Returns false, and changes nothing, if less than `amount` is left.
    bool try_charge(std::size_t amount) noexcept
    {
        if (amount > left_) [[unlikely]]
            return false;
        left_ -= amount;
        return true;
    }
    /// Returns `amount` bytes or blocks to the quota.
    void refund(std::size_t amount) noexcept { left_ += amount; }
    void refund_all() noexcept { left_ = most_; }       ///< makes the whole quota free again
    std::size_t left() const noexcept { return left_; } ///< the amount that is not used yet
    std::size_t most() const noexcept { return most_; } ///< the whole quota

private:
    std::size_t most_;
    std::size_t left_;
};

/// A quota that several threads may use at the same time.
template <>
class quota<true> {
public:
    /// Makes an unused quota of `most` bytes or blocks.
    constexpr explicit quota(std::size_t most) noexcept : most_(most), left_(most) {}

    /// Counts `amount` as used, in a compare-exchange loop. A thread must not subtract first and
    /// test afterwards, because until it adds the amount back, other threads would fail although
    /// enough is left for them. The acquire operation pairs with the release operation in `refund`.
    bool try_charge(std::size_t amount) noexcept
    {
        std::size_t left = left_.load(std::memory_order_relaxed);
        while (amount <= left)
            if (left_.compare_exchange_weak(left, left - amount, std::memory_order_acquire,
                                            std::memory_order_relaxed))
                return true;
        return false;
    }
    /// Counts `amount` as no longer used.
    void refund(std::size_t amount) noexcept { left_.fetch_add(amount, std::memory_order_release); }
    /// Makes the whole quota free again.
    void refund_all() noexcept { left_.store(most_, std::memory_order_relaxed); }
    /// Returns the amount that is not used yet.
    std::size_t left() const noexcept { return left_.load(std::memory_order_relaxed); }
    std::size_t most() const noexcept { return most_; } ///< the whole quota

private:
    std::size_t most_;
    std::atomic<std::size_t> left_;
};

/// Fails allocations that would exceed a budget of bytes, of blocks, or of both. The limit is
/// exact, so the last byte of the budget can be allocated.
///
///     mallard::limited<mallard::multipool<>> memory({.bytes = 1 << 20});
///
///     mallard::limited<mallard::default_heap> half({.bytes = 1 << 29});
///     mallard::pool<mallard::ref<decltype(half)>> messages(64, 0, half);
///
/// Around an allocator, counts the bytes that the callers request. Around a source, counts the
/// bytes that the source supplies. An allocator over a limited source calls `most_to_take`, and
/// makes its last chunk request no larger than that. Freed bytes can be allocated again.
///
/// If a request exceeds the budget, `allocate` throws `std::bad_alloc`, `try_allocate` returns
/// null, and `last_failure` returns the reason in one line. A `limited<A>` is for one thread at a
/// time. A `limited<A, sync::lock_free>` allows the same concurrent calls as `A`, and cannot be
/// moved. All threads together never hold more than the budget.
template <source Inner, sync Threads = sync::none>
    requires sync_of_counters<Threads>
class limited : public adaptor<limited<Inner, Threads>, Inner> {
    using base = adaptor<limited, Inner>;
    friend adaptor_access;
    static constexpr bool shared = has_atomic_counters(Threads);

public:
    /// Whether any thread may call this object (see `shareable`).
    static constexpr bool any_thread = shared && shareable<Inner>;

    /// Makes an allocator that is limited by a budget.
    constexpr explicit limited(budget most) noexcept
        requires std::default_initializable<Inner>
        : bytes_(most.bytes), blocks_(most.blocks)
    {
    }
    /// Makes an allocator that is limited by a budget. The other arguments construct the wrapped
    /// object.
    template <class... Args>
    constexpr limited(budget most, std::in_place_t,
                      Args&&... args) noexcept(std::is_nothrow_constructible_v<Inner, Args...>)
        : base(std::in_place, std::forward<Args>(args)...), bytes_(most.bytes), blocks_(most.blocks)
    {
    }

    /// Returns the bytes that can still be allocated.
    std::size_t bytes_left() const noexcept { return bytes_.left(); }
    /// Returns the blocks that can still be allocated.
    std::size_t blocks_left() const noexcept { return blocks_.left(); }
    /// Returns the largest request that can succeed; see the concept `bounded`.
    std::size_t most_to_take() const noexcept
    {
        if constexpr (bounded<Inner>)
            return std::min(bytes_left(), base::upstream().most_to_take());
        return bytes_left();
    }
    /// Returns the whole budget, as given to the constructor.
    constexpr budget most() const noexcept { return {bytes_.most(), blocks_.most()}; }

    /// Returns the reason for the last failure as one line of text, which is never freed. Returns
    /// "" if no call failed. If calls in several threads fail at the same time, returns the reason
    /// for one of these failures.
    const char* last_failure() const noexcept { return failure_; }

private:
    template <bool Throws>
    [[gnu::always_inline]] chunk take_one(layout l) noexcept(!Throws)
    {
        if (!blocks_.try_charge(1)) [[unlikely]]
            return fail_with<Throws>(
                "the block budget is used up: free blocks, or raise the budget");
        if (!bytes_.try_charge(l.bytes)) [[unlikely]] {
            blocks_.refund(1);
            return fail_with<Throws>("the budget has too few bytes left: free blocks, or raise it");
        }
        chunk const taken = base::template take_below_or<Throws>(l, [this, l]() noexcept {
            refund(l.bytes);
            failure_ = "the wrapped allocator is exhausted, but not the budget";
        });
        if constexpr (chunk_source<Inner>) // some sources round up, for example `pages`
            if (taken.bytes > l.bytes && !bytes_.try_charge(taken.bytes - l.bytes)) [[unlikely]] {
                base::give_below(taken);
                refund(l.bytes);
                return fail_with<Throws>("the source returned more bytes than the budget has left");
            }
        return taken;
    }
    [[gnu::always_inline]] void give_one(chunk c) noexcept
    {
        std::size_t const bytes = c.bytes; // read before another thread can take the chunk
        base::give_below(c);
        refund(bytes);
    }
    void forget_all() noexcept
    {
        bytes_.refund_all();
        blocks_.refund_all();
    }

    void refund(std::size_t bytes) noexcept
    {
        blocks_.refund(1);
        bytes_.refund(bytes);
    }

    template <bool Throws>
    chunk fail_with(const char* why) noexcept(!Throws)
    {
        failure_ = why;
        return fail_allocation<Throws>();
    }

    // In each quota, the unused amount plus the amount in use equals `most()`.
    quota<shared> bytes_;
    quota<shared> blocks_;
    std::conditional_t<shared, std::atomic<const char*>, const char*> failure_ = "";
};

} // namespace mallard
