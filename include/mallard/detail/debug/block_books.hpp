// Which blocks are in use, and which are freed but kept a while: told apart from the
// blocks, where nobody who writes beyond his own can reach it.
#pragma once

#include <mallard/detail/base/call_stack.hpp>
#include <mallard/pool.hpp>

namespace mallard {

/// A record for each block, found by the block's address in constant time. Records
/// and their index are a pool's, on `Heap`. Taking a record can be refused; nothing
/// else here can: an index that cannot grow only gets slower.
///
/// A block is in use, then kept (freed, but not given back), then forgotten; or
/// forgotten at once. Between any two calls:
///
///     count  ==  |live| + |kept|  ==  records in all buckets
///     a record is in `kept`  ==  its is_free
///
/// Addresses of records in use differ, and so do those of kept ones from them: what is
/// kept was not given back, so nobody else can get it.
template <std::size_t Frames, source Heap>
class block_books {
public:
    struct record {
        std::byte* data = nullptr; // the block
        std::size_t bytes = 0;
        std::size_t align = 1;
        chunk taken{}; // what it lies in
        std::uint64_t number = 0;
        bool is_free = false;
        [[no_unique_address]] recorded_calls<Frames> allocated{};
        [[no_unique_address]] recorded_calls<Frames> freed{};

        record* next_in_bucket = nullptr;
        record* older = nullptr;
        record* newer = nullptr;
    };

    /// By the order in which they came: so the oldest of those kept goes first, and leaks
    /// are told from the first on.
    class list {
    public:
        void push(record& r) noexcept
        {
            r.older = std::exchange(newest_, &r);
            r.newer = nullptr;
            (r.older != nullptr ? r.older->newer : oldest_) = &r;
        }
        void remove(record& r) noexcept
        {
            (r.older != nullptr ? r.older->newer : oldest_) = r.newer;
            (r.newer != nullptr ? r.newer->older : newest_) = r.older;
        }
        record* oldest() const noexcept { return oldest_; }

        /// `f` may remove the record that it is given.
        template <class F>
        void for_each(F f) const
        {
            for (record* r = oldest_; r != nullptr;)
                f(*std::exchange(r, r->newer));
        }

    private:
        record* oldest_ = nullptr;
        record* newest_ = nullptr;
    };

    block_books() noexcept = default;
    block_books(const block_books&) = delete;
    block_books& operator=(const block_books&) = delete;

    /// Null when the heap refuses.
    record* open(chunk taken, std::byte* data, std::size_t bytes, std::size_t align) noexcept
    {
        void* const room = memory_.try_allocate();
        if (room == nullptr)
            return nullptr;
        auto* const r = ::new (room) record{
            .data = data, .bytes = bytes, .align = align, .taken = taken, .number = ++opened_};
        if (count_ == size_)
            grow();
        enter(*r);
        count_ += 1;
        live_.push(*r);
        return r;
    }

    /// From those in use to those that are kept.
    void retire(record& r) noexcept
    {
        r.is_free = true;
        live_.remove(r);
        kept_.push(r);
    }

    /// Forgets it.
    void close(record& r) noexcept
    {
        record** at = &bucket_of(r.data);
        while (*at != &r)
            at = &(*at)->next_in_bucket;
        *at = r.next_in_bucket;
        count_ -= 1;
        (r.is_free ? kept_ : live_).remove(r);
        memory_.deallocate(&r);
    }

    /// In use or kept; null if there is none that begins there.
    record* find(const void* block) noexcept
    {
        record* r = bucket_of(block);
        while (r != nullptr && r->data != block)
            r = r->next_in_bucket;
        return r;
    }

    /// The block in use that has `p` in it; O(blocks).
    record* around(const void* p) const noexcept
    {
        record* r = live_.oldest();
        while (r != nullptr && !(r->data <= p && p < r->data + r->bytes))
            r = r->newer;
        return r;
    }

    /// Of all blocks, kept ones too, the one that begins or ends next to `p`; O(blocks).
    record* nearest(const void* p) const noexcept
    {
        record* best = nullptr;
        auto const closer = [&](record& r) {
            if (best == nullptr || distance(r, p) < distance(*best, p))
                best = &r;
        };
        live_.for_each(closer);
        kept_.for_each(closer);
        return best;
    }

    const list& live() const noexcept { return live_; }
    const list& kept() const noexcept { return kept_; }

private:
    // By numbers, since the addresses are of different objects.
    static std::uintptr_t distance(const record& r, const void* p) noexcept
    {
        auto const at = reinterpret_cast<std::uintptr_t>(p);
        auto const begin = reinterpret_cast<std::uintptr_t>(r.data);
        std::uintptr_t const end = begin + r.bytes;
        return at < begin ? begin - at : at - std::min(at, end);
    }

    struct bucket {
        record* first = nullptr;
    };

    record*& bucket_of(const void* block) noexcept
    {
        // Multiplied by the golden ratio: addresses differ in the middle, buckets in the end.
        auto const mixed = reinterpret_cast<std::uintptr_t>(block) * 0x9e3779b97f4a7c15u;
        return buckets_[(mixed >> 32) & (size_ - 1)].first;
    }

    void enter(record& r) noexcept { r.next_in_bucket = std::exchange(bucket_of(r.data), &r); }

    /// Eightfold, since each time all are entered anew; from one bucket, which is here
    /// and cannot be refused.
    void grow() noexcept
    {
        layout const wanted = layout_of<bucket>(8 * size_);
        void* const room = memory_.try_allocate(wanted);
        if (room == nullptr)
            return;
        bucket* const before = buckets_;
        std::size_t const size_before = size_;
        buckets_ = static_cast<bucket*>(room);
        size_ = 8 * size_;
        std::uninitialized_value_construct_n(buckets_, size_);
        live_.for_each([this](record& r) { enter(r); });
        kept_.for_each([this](record& r) { enter(r); });
        if (before != &first_bucket_)
            memory_.deallocate(before, layout_of<bucket>(size_before));
    }

    static constexpr pool_options of_records{
        .block = sizeof(record), .align = alignof(record), .order = reuse::lifo};

    pool<Heap, of_records> memory_;
    list live_;
    list kept_;
    bucket first_bucket_; // so that there is always an index
    bucket* buckets_ = &first_bucket_;
    std::size_t size_ = 1; // a power of two
    std::size_t count_ = 0;
    std::uint64_t opened_ = 0;
};

} // namespace mallard
