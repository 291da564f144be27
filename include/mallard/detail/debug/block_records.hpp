// The code that `checked` and `guarded` share: a record for each block, redzones around the blocks,
// and the reports of faults that records and redzones reveal.
//
//     checked    | redzone |   block   | redzone |           in memory of the wrapped allocator
//     guarded    | redzone     |   block   | r | ////////    in pages before an inaccessible page
//
// `checked` and `guarded` differ in the position of a block within its memory, and in what happens
// to a freed block. `checked` fills a freed block with a pattern, while `guarded` makes its pages
// inaccessible.
#pragma once

#include <mallard/debug/fault.hpp>
#include <mallard/detail/base/call_stack.hpp>
#include <mallard/pool.hpp>

#include <cstring>
#include <memory>

namespace mallard {

/// A record for each block, found in constant time by the address of the block. The records are not
/// next to the blocks, so an overrun cannot reach them. The records and their hash table are
/// allocated from pools over `Heap`. Only `add` can fail. If there is no memory for a larger hash
/// table, the old table stays in use, and lookups get slower.
///
/// A block is live at first. After the free it may be in quarantine, which means that the caller
/// has freed the block, but the wrapped allocator has not. In the end its record is removed. These
/// invariants hold between any two calls:
///
///     count  ==  |live| + |quarantine|  ==  records in all buckets
///     a record is in `quarantine`  ==  its member is_free
///
/// The blocks of all records have different addresses, because the memory of a block in quarantine
/// cannot be allocated again.
template <std::size_t Frames, source Heap>
class block_records {
public:
    struct record {
        std::byte* data = nullptr; // the block
        std::size_t bytes = 0;
        std::size_t align = 1;
        chunk taken{}; // the memory around the block
        std::uint64_t number = 0;
        bool is_free = false;
        [[no_unique_address]] recorded_calls<Frames> allocated{};
        [[no_unique_address]] recorded_calls<Frames> freed{};

        record* next_in_bucket = nullptr;
        record* older = nullptr;
        record* newer = nullptr;
    };

    /// Records in the order in which they were added. Because of this order, the oldest record
    /// leaves the quarantine first, and leaks are reported in the order of allocation.
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

        /// Calls `f(record)` for each record, oldest first. `f` may remove that record.
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

    block_records() noexcept = default;
    block_records(const block_records&) = delete;
    block_records& operator=(const block_records&) = delete;

    /// Adds a live block. Returns null when the heap has no memory for the record.
    record* add(chunk taken, std::byte* data, std::size_t bytes, std::size_t align) noexcept
    {
        void* const room = memory_.try_allocate();
        if (room == nullptr)
            return nullptr;
        auto* const r = ::new (room) record{
            .data = data, .bytes = bytes, .align = align, .taken = taken, .number = ++added_};
        if (count_ == size_)
            grow();
        insert(*r);
        count_ += 1;
        live_.push(*r);
        return r;
    }

    /// Moves a live block to the quarantine.
    void move_to_quarantine(record& r) noexcept
    {
        r.is_free = true;
        live_.remove(r);
        quarantine_.push(r);
    }

    void remove(record& r) noexcept
    {
        record** at = &bucket_of(r.data);
        while (*at != &r)
            at = &(*at)->next_in_bucket;
        *at = r.next_in_bucket;
        count_ -= 1;
        (r.is_free ? quarantine_ : live_).remove(r);
        memory_.deallocate(&r);
    }

    /// Returns the record of the block that begins at the address, live or in quarantine, or null.
    record* find(const void* block) noexcept
    {
        record* r = bucket_of(block);
        while (r != nullptr && r->data != block)
            r = r->next_in_bucket;
        return r;
    }

    /// Returns the record of the live block that contains `p`, or null. O(blocks).
    record* around(const void* p) const noexcept
    {
        record* r = live_.oldest();
        while (r != nullptr && !(r->data <= p && p < r->data + r->bytes))
            r = r->newer;
        return r;
    }

    /// Returns the record of the block, live or in quarantine, whose start or end is nearest to
    /// `p`. O(blocks).
    record* nearest(const void* p) const noexcept
    {
        record* best = nullptr;
        auto const closer = [&](record& r) {
            if (best == nullptr || distance(r, p) < distance(*best, p))
                best = &r;
        };
        live_.for_each(closer);
        quarantine_.for_each(closer);
        return best;
    }

    const list& live() const noexcept { return live_; }
    const list& quarantine() const noexcept { return quarantine_; }

private:
    // Returns the distance between the block and `p`. Compares integers, because the addresses
    // belong to different objects.
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
        // Multiplies by 2^64 divided by the golden ratio, because addresses differ mostly in their
        // middle bits.
        auto const mixed = reinterpret_cast<std::uintptr_t>(block) * 0x9e3779b97f4a7c15u;
        return buckets_[(mixed >> 32) & (size_ - 1)].first;
    }

    void insert(record& r) noexcept { r.next_in_bucket = std::exchange(bucket_of(r.data), &r); }

    /// Makes the hash table eight times as large. Each growth inserts all records again, so growth
    /// should be rare. A table always exists, because the first table, which has one bucket, is a
    /// member of this class.
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
        live_.for_each([this](record& r) { insert(r); });
        quarantine_.for_each([this](record& r) { insert(r); });
        if (before != &first_bucket_)
            memory_.deallocate(before, layout_of<bucket>(size_before));
    }

    static constexpr pool_options of_records{
        .block = sizeof(record), .align = alignof(record), .order = reuse::lifo};

    pool<Heap, of_records> memory_;
    list live_;
    list quarantine_;
    bucket first_bucket_;
    bucket* buckets_ = &first_bucket_;
    std::size_t size_ = 1; // buckets of the table, a power of two
    std::size_t count_ = 0;
    std::uint64_t added_ = 0;
};

/// The byte values with which Mallard fills memory that a caller must not use. The values are odd,
/// which pointers are not. They are large, which most counts are not, and above 0x7f, which ASCII
/// characters are not.
namespace fill {
inline constexpr unsigned char fresh = 0xc9;   ///< fills a block that was just allocated
inline constexpr unsigned char freed = 0xdb;   ///< fills a freed block in quarantine
inline constexpr unsigned char redzone = 0xf5; ///< fills the bytes around a block
} // namespace fill

/// Fills bytes that no code may access from now on. AddressSanitizer and Valgrind report an access,
/// and `equal_bytes` finds a write later.
inline void paint(std::byte* p, std::size_t bytes, unsigned char value) noexcept
{
    unpoison<true>(p, bytes);
    std::memset(p, value, bytes);
    poison<true>(p, bytes);
}

/// Counts the bytes from `p` on that are equal to `value`. The bytes may be poisoned, because
/// sanitizers do not see these reads.
[[gnu::noinline, gnu::no_sanitize_address]] inline std::size_t
equal_bytes(const std::byte* p, std::size_t bytes, unsigned char value) noexcept
{
    no_valgrind_reports<true> const by_valgrind;
    // Compares eight bytes at a time, because the bytes of a large freed block would take too long
    // one by one.
    std::uint64_t const eight = 0x0101010101010101u * value;
    std::size_t i = 0;
    for (std::uint64_t word = eight; word == eight && i + sizeof word <= bytes;) {
        __builtin_memcpy(&word, p + i, sizeof word);
        i += word == eight ? sizeof word : 0;
    }
    while (i < bytes && p[i] == std::byte{value})
        ++i;
    return i;
}

/// Builds and inspects redzones, and reports faults. All bytes of a chunk after its block, and up
/// to 64 KiB in front of the block, are redzones. Each allocation and each free records up to
/// `Frames` calls of the call stack. If the fault handler returns, a bad free has no effect, and
/// overwritten redzones are filled again.
///
/// `register_block` and `validate_free` are always inlined into the functions of the adaptor. A
/// recorded call stack starts at the caller of the function that records it, so it starts at the
/// caller of the adaptor.
template <std::size_t Frames, source Heap>
class block_inspector {
    using records_type = block_records<Frames, Heap>;

public:
    using record = typename records_type::record;

    explicit block_inspector(fault_reporter reporter) noexcept : reporter_(reporter) {}

    records_type& records() noexcept { return records_; }

    /// Adds a block at `data` inside `taken`, and builds its redzones. Returns null when the heap
    /// has no memory for the record.
    [[gnu::always_inline]] record* register_block(chunk taken, std::byte* data, std::size_t bytes,
                                                  std::size_t align) noexcept
    {
        record* const r = records_.add(taken, data, bytes, align);
        if (r == nullptr)
            return nullptr;
        r->allocated.record();
        unpoison<true>(taken.data, taken.bytes);
        build_redzones(*r);
        return r;
    }

    /// Fills a new block, so that a program that reads uninitialised bytes always reads the same
    /// useless values.
    static void fill_fresh(record& r) noexcept
    {
        std::memset(r.data, fill::fresh, r.bytes);
        valgrind::unpoison(r.data, r.bytes); // Valgrind still treats the bytes as uninitialised
    }

    static void fill_freed(record& r) noexcept { paint(r.data, r.bytes, fill::freed); }

    /// Removes the record of a block. Returns the memory of the block, which is no longer poisoned
    /// for sanitizers.
    chunk remove(record& r) noexcept
    {
        chunk const taken = r.taken;
        unpoison<true>(taken.data, taken.bytes);
        records_.remove(r);
        return taken;
    }

    void remove_all() noexcept
    {
        records_.quarantine().for_each([this](record& r) { remove(r); });
        records_.live().for_each([this](record& r) { remove(r); });
    }

    /// Returns the record of a block that is about to be freed. Reports a bad free and returns null
    /// if `block` is free already or is not a block. `block` may be any address, because memory at
    /// that address is read only after its record was found. Also reports a wrong layout and
    /// overwritten redzones.
    [[gnu::always_inline]] record* validate_free(const void* block, layout said) noexcept
    {
        record* const r = records_.find(block);
        if (r == nullptr) {
            record* const around = records_.around(block);
            report(around == nullptr ? fault_kind::foreign_free : fault_kind::interior_free, block,
                   around);
            return nullptr;
        }
        if (r->is_free) {
            report(fault_kind::double_free, block, r);
            return nullptr;
        }
        if (said.bytes != r->bytes || said.align != r->align)
            report(fault_kind::wrong_layout, block, r, said);
        r->freed.record();
        inspect_redzones(*r);
        return r;
    }

    /// Reports overwritten redzones, and fills them again, so that no overrun is reported twice.
    void inspect_redzones(record& r) noexcept
    {
        std::byte* const begin = begin_of(r);
        std::byte* const block_end = r.data + r.bytes;
        auto const front = static_cast<std::size_t>(r.data - begin);
        auto const back = static_cast<std::size_t>(end_of(r) - block_end);
        std::size_t const sound_front = equal_bytes(begin, front, fill::redzone);
        std::size_t const sound_back = equal_bytes(block_end, back, fill::redzone);
        if (sound_front == front && sound_back == back) [[likely]]
            return;
        if (sound_front != front)
            report(fault_kind::underrun, begin + sound_front, &r);
        if (sound_back != back)
            report(fault_kind::overrun, block_end + sound_back, &r);
        build_redzones(r);
    }

    /// Reports a write into a freed block after `fill_freed` has filled it, and fills the block
    /// again.
    void inspect_freed(record& r) noexcept
    {
        std::size_t const sound = equal_bytes(r.data, r.bytes, fill::freed);
        if (sound == r.bytes) [[likely]]
            return;
        report(fault_kind::write_after_free, r.data + sound, &r);
        fill_freed(r);
    }

    /// Reports an access to `p` as a fault of the nearest block. Returns false if there are no
    /// blocks. O(blocks).
    bool explain_touch(const void* p) const noexcept
    {
        const record* const r = records_.nearest(p);
        if (r != nullptr)
            report(r->is_free ? fault_kind::touch_after_free : fault_kind::touch_outside, p, r);
        return r != nullptr;
    }

    /// Reports all live blocks as one fault, if there are any.
    void report_leaks() noexcept
    {
        std::array<faulty_block, leaks_shown> first;
        std::size_t count = 0;
        std::size_t bytes = 0;
        records_.live().for_each([&](record& r) {
            if (count < first.size())
                first[count] = describe(r);
            count += 1;
            bytes += r.bytes;
        });
        if (count != 0)
            reporter_.on_fault({.kind = fault_kind::leak,
                                .allocator = reporter_.name,
                                .at = first.front().data,
                                .count = count,
                                .bytes = bytes,
                                .blocks = std::span(first).first(std::min(count, first.size()))});
    }

private:
    static constexpr std::size_t leaks_shown = 8;
    static constexpr std::size_t front_max = std::size_t{1} << 16;

    /// Returns the start of the redzone before the block.
    static std::byte* begin_of(const record& r) noexcept
    {
        auto const front = static_cast<std::size_t>(r.data - static_cast<std::byte*>(r.taken.data));
        return r.data - std::min(front, front_max);
    }
    static std::byte* end_of(const record& r) noexcept
    {
        return static_cast<std::byte*>(r.taken.data) + r.taken.bytes;
    }

    static void build_redzones(const record& r) noexcept
    {
        std::byte* const block_end = r.data + r.bytes;
        paint(begin_of(r), static_cast<std::size_t>(r.data - begin_of(r)), fill::redzone);
        paint(block_end, static_cast<std::size_t>(end_of(r) - block_end), fill::redzone);
    }

    static faulty_block describe(const record& r) noexcept
    {
        return {.data = r.data,
                .bytes = r.bytes,
                .align = r.align,
                .number = r.number,
                .allocated = r.allocated.view(),
                .freed = r.freed.view()};
    }

    MALLARD_COLD void report(fault_kind kind, const void* at, const record* r,
                             layout said = {0, 1}) const noexcept
    {
        faulty_block const block = r == nullptr ? faulty_block{} : describe(*r);
        std::span const blocks(&block, r == nullptr ? 0 : 1);
        reporter_.on_fault(
            {.kind = kind, .allocator = reporter_.name, .at = at, .said = said, .blocks = blocks});
    }

    records_type records_;
    fault_reporter reporter_;
};

} // namespace mallard
