// Blocks on their way from thread to thread.
#pragma once

#include "choices.hpp"
#include "subject.hpp"
#include "threads.hpp"

#include <cstring>
#include <memory>

namespace mallard::testing {

/// A block in use, and what its bytes say: who took it, as which of theirs. Were it
/// in two hands at once, they would not say it for long.
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

    /// Just before it is freed.
    void* verified() const
    {
        for_each_part([this](std::byte* at, std::size_t bytes) {
            require(std::memcmp(at, &mark_, bytes) == 0, "a block is in one hand at a time");
        });
        return block_;
    }

private:
    static constexpr std::size_t edge_bytes = 64; // of large blocks, only both ends

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

/// Where threads leave blocks, and take those of others.
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

/// What traders ask for.
struct demand {
    bool batches = true;
    std::size_t largest = 0;        ///< of a multipool's blocks
    std::size_t large_one_in = 100; ///< allocations; those are too large for a pool
    bool may_be_refused = false;
};

/// One of several threads that allocate, and mostly free what others have allocated.
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

    /// At the end, by one thread.
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
        require(block != nullptr || wanted_.may_be_refused, "a refusal has a reason");
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

    /// Many at once, so that arrays overflow and run dry.
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
            return require(wanted_.may_be_refused, "a refusal has a reason");
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

/// On the heap: ThreadSanitizer sees no std::mutex end, and would take that of the
/// next object in the same place of the stack for the same.
template <class A, class Make>
std::unique_ptr<subject> new_subject(Make make)
{
    return std::make_unique<subject_of<A>>(make);
}

/// Several threads trade; at the end nothing is in use but what was before.
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
