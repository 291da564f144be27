// Threads that exchange blocks, and blocks that reveal when they are in use twice.
#pragma once

#include "choices.hpp"
#include "subject.hpp"
#include "threads.hpp"

#include <cstring>
#include <memory>

namespace mallard::testing {

/// A block in use, filled with a stamp of its owner and number. If two threads had the block at the
/// same time, one of them would find the stamp of the other thread.
class stamped {
public:
    stamped() = default;
    stamped(void* block, layout asked, std::size_t owner, std::size_t serial)
        : block_(static_cast<std::byte*>(block)), asked_(asked),
          mark_((owner + 1) * 0x9e3779b97f4a7c15u ^ (serial + 1) * 0xc2b2ae3d27d4eb4fu)
    {
        require(reinterpret_cast<std::uintptr_t>(block) % asked.align == 0, "a block is aligned");
        for_each_part([this](std::byte* at, std::size_t bytes) { std::memcpy(at, &mark_, bytes); });
    }

    explicit operator bool() const { return block_ != nullptr; }
    layout asked() const { return asked_; }

    /// Checks the stamp, and returns the block, so that the caller can free it.
    void* verified() const
    {
        for_each_part([this](std::byte* at, std::size_t bytes) {
            require(std::memcmp(at, &mark_, bytes) == 0, "a block belongs to one thread at a time");
        });
        return block_;
    }

private:
    static constexpr std::size_t edge_bytes = 64; // large blocks are marked at both ends only

    template <class F>
    void for_each_part(F f) const
    {
        for (std::size_t at = 0; at < asked_.bytes; at += sizeof mark_)
            if (at < edge_bytes || asked_.bytes - at <= edge_bytes)
                f(block_ + at, std::min(sizeof mark_, asked_.bytes - at));
    }

    std::byte* block_ = nullptr;
    layout asked_{0, 1};
    std::uint64_t mark_ = 0;
};

/// Places where threads leave blocks and get the blocks of other threads.
class market {
public:
    static constexpr std::size_t places = 256;

    stamped swap(std::size_t at, stamped mine)
    {
        place& p = places_[at];
        std::lock_guard const alone(p.lock);
        return std::exchange(p.left, mine);
    }

private:
    struct place {
        std::mutex lock;
        stamped left;
    };
    std::array<place, places> places_;
};

/// The sizes that a trader allocates.
struct demand {
    bool batches = true;
    std::size_t largest = 0;        ///< bytes of the largest pooled block of a multipool
    std::size_t large_one_in = 100; ///< one in so many allocations is too large for a pool
    bool may_fail = false;
};

/// One of several threads that allocate blocks and mostly free blocks of other threads.
class trader {
public:
    trader(subject& of, market& with, std::size_t number, demand wanted)
        : subject_(of), market_(with), choose_(number + 1), number_(number), wanted_(wanted)
    {
    }

    void step()
    {
        switch (choose_(16)) {
        default:
            return exchange(allocate(some_layout()));
        case 0:
            return hoard(choose_(300));
        case 1:
            return wanted_.batches ? exchange_batch(choose_(100)) : hoard(choose_(100));
        }
    }

    /// Frees the blocks that are left. Only one thread calls this, after the other threads are
    /// done.
    void free_all()
    {
        for (std::size_t at = 0; at < market::places; ++at)
            deallocate(market_.swap(at, {}));
    }

private:
    layout some_layout()
    {
        if (choose_(wanted_.large_one_in) == 0)
            return layout(5000 + choose_(20000), std::size_t{16} << choose_(4));
        if (auto const single = subject_.single())
            return *single;
        std::size_t const bytes = 1 + choose_(choose_(4) == 0 ? wanted_.largest : 256);
        return layout(bytes, std::size_t{1} << choose_(5));
    }
    std::size_t some_place() { return choose_(market::places); }

    stamped allocate(layout l)
    {
        bool const throws = choose_(2) == 0;
        void* const block = l == subject_.single() && choose_(4) != 0
                                ? subject_.allocate_single(throws)
                                : subject_.allocate(l, throws);
        require(block != nullptr || wanted_.may_fail, "an allocation fails only where it may");
        return block == nullptr ? stamped() : stamped(block, l, number_, serial_++);
    }
    void deallocate(const stamped& old)
    {
        if (!old)
            return;
        if (old.asked() == subject_.single() && choose_(4) != 0)
            subject_.deallocate_single(old.verified());
        else
            subject_.deallocate(old.verified(), old.asked());
    }

    void exchange(const stamped& fresh) { deallocate(market_.swap(some_place(), fresh)); }

    /// Allocates many blocks, then exchanges and frees as many, so that arrays become empty and
    /// overflow.
    void hoard(std::size_t count)
    {
        std::vector<stamped> mine(count);
        layout const l = some_layout();
        for (stamped& one : mine)
            one = allocate(l);
        for (stamped const& one : mine)
            exchange(one);
    }

    void exchange_batch(std::size_t count)
    {
        std::vector<void*> blocks(count);
        layout const l = *subject_.single();
        if (!subject_.allocate_batch(blocks, choose_(2) == 0))
            return require(wanted_.may_fail, "an allocation fails only where it may");
        std::vector<void*> old;
        for (void* const block : blocks) {
            stamped const other = market_.swap(some_place(), stamped(block, l, number_, serial_++));
            if (other && other.asked() == l)
                old.push_back(other.verified());
            else
                deallocate(other);
        }
        subject_.deallocate_batch(old);
    }

    subject& subject_;
    market& market_;
    seeded choose_;
    std::size_t number_;
    demand wanted_;
    std::size_t serial_ = 0;
};

/// Makes a subject on the heap. On the stack, ThreadSanitizer would mistake the mutex of the next
/// object at the same address for the mutex of this object, because it does not see that a
/// std::mutex is destroyed.
template <class A, class Make>
std::unique_ptr<subject> new_subject(Make make)
{
    return std::make_unique<subject_of<A>>(make);
}

/// Lets several threads trade, frees all their blocks, and checks that the pool then counts no
/// block in use.
inline void trade(subject& of, demand wanted, std::size_t threads, std::size_t steps)
{
    std::size_t const before = of.stats().blocks_live;
    market between;
    in_threads(threads, [&](std::size_t number) {
        trader one(of, between, number, wanted);
        for (std::size_t i = 0; i < steps; ++i)
            one.step();
    });
    trader(of, between, threads, wanted).free_all();
    require(of.stats().blocks_live == before, "blocks are counted");
}

} // namespace mallard::testing
