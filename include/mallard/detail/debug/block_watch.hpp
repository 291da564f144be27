// What `checked` and `guarded` have in common: books, fences around the blocks, and
// the faults that those show.
//
//     checked    | fence |   block   | fence |           of what is wrapped
//     guarded    | fence     |   block   | f | ////////  pages, and one nobody may touch
//
// They differ in where a block lies in what is taken for it, and in what becomes of a
// freed one: the first fills it, the second takes its pages away.
#pragma once

#include <mallard/detail/base/fault.hpp>
#include <mallard/detail/debug/block_books.hpp>

#include <cstring>

namespace mallard {

namespace fill {
// Odd, so no pointer; large, so no count; not a character of ASCII.
inline constexpr unsigned char fresh = 0xc9; ///< of blocks just allocated
inline constexpr unsigned char freed = 0xdb; ///< of freed blocks that are kept
inline constexpr unsigned char fence = 0xf5; ///< around blocks
} // namespace fill

/// Fills bytes that nobody is to touch from now on, so that AddressSanitizer and
/// Valgrind stop who does, and `equal_bytes` tells who did.
inline void paint(std::byte* p, std::size_t bytes, unsigned char value) noexcept
{
    unpoison<true>(p, bytes);
    std::memset(p, value, bytes);
    poison<true>(p, bytes);
}

/// How many of the bytes from `p` on are `value` before one is not. They may be
/// poisoned: sanitizers are not to see these reads.
[[gnu::noinline, gnu::no_sanitize_address]] inline std::size_t
equal_bytes(const std::byte* p, std::size_t bytes, unsigned char value) noexcept
{
    unwatched<true> const by_valgrind;
    // Eight at a time: by the byte, a large freed block would take longer than all else.
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

/// Everything in a chunk that is not its block is fence, but for what an alignment above 64 KiB
/// leaves in front. `Frames` calls are recorded at each allocation and free. Faults go to the
/// reporter; when it returns, all is as if there had been none: a bad free is no free, and
/// what was overwritten is mended.
///
/// `admit` and `dismiss` are always inlined, since a record of calls leaves out the function
/// that asks for it, which is to be one of the adaptor and none of here.
template <std::size_t Frames, source Heap>
class block_watch {
    using books_type = block_books<Frames, Heap>;

public:
    using record = typename books_type::record;

    explicit block_watch(fault_reporter reporter) noexcept : reporter_(reporter) {}

    books_type& books() noexcept { return books_; }

    /// A block of `l.bytes` at `data` inside of `taken`; null when the heap refuses.
    [[gnu::always_inline]] record* admit(chunk taken, std::byte* data, std::size_t bytes,
                                         std::size_t align) noexcept
    {
        record* const r = books_.open(taken, data, bytes, align);
        if (r == nullptr)
            return nullptr;
        r->allocated.record();
        unpoison<true>(taken.data, taken.bytes);
        build_fences(*r);
        return r;
    }

    /// So that who reads before he writes sees always the same, and nothing sensible.
    static void fill_fresh(record& r) noexcept
    {
        std::memset(r.data, fill::fresh, r.bytes);
        valgrind::unpoison(r.data, r.bytes); // a pattern is not a value
    }

    static void fill_freed(record& r) noexcept { paint(r.data, r.bytes, fill::freed); }

    /// The block is forgotten. Gives what it lay in, which sanitizers may see again.
    chunk close(record& r) noexcept
    {
        chunk const taken = r.taken;
        unpoison<true>(taken.data, taken.bytes);
        books_.close(r);
        return taken;
    }

    /// The record of a block that is being freed; null when that changes nothing: the
    /// block is free already, or none. Books are asked before any byte is read, so
    /// `block` may be any address.
    [[gnu::always_inline]] record* dismiss(const void* block, layout said) noexcept
    {
        record* const r = books_.find(block);
        if (r == nullptr) {
            record* const around = books_.around(block);
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
        inspect_fences(*r);
        return r;
    }

    void close_all() noexcept
    {
        books_.kept().for_each([this](record& r) { close(r); });
        books_.live().for_each([this](record& r) { close(r); });
    }

    /// What is reported is mended, so it is not reported again.
    void inspect_fences(record& r) noexcept
    {
        std::byte* const begin = begin_of(r);
        std::byte* const block_end = r.data + r.bytes;
        auto const front = static_cast<std::size_t>(r.data - begin);
        auto const back = static_cast<std::size_t>(end_of(r) - block_end);
        std::size_t const sound_front = equal_bytes(begin, front, fill::fence);
        std::size_t const sound_back = equal_bytes(block_end, back, fill::fence);
        if (sound_front == front && sound_back == back) [[likely]]
            return;
        if (sound_front != front)
            report(fault_kind::underrun, begin + sound_front, &r);
        if (sound_back != back)
            report(fault_kind::overrun, block_end + sound_back, &r);
        build_fences(r);
    }

    /// The same for the bytes of a freed block, which `fill_freed` has filled.
    void inspect_freed(record& r) noexcept
    {
        std::size_t const sound = equal_bytes(r.data, r.bytes, fill::freed);
        if (sound == r.bytes) [[likely]]
            return;
        report(fault_kind::write_after_free, r.data + sound, &r);
        fill_freed(r);
    }

    /// Blames the block next to `p`, in use or kept, if there is one; O(blocks).
    bool explain_touch(const void* p) const noexcept
    {
        const record* const r = books_.nearest(p);
        if (r != nullptr)
            report(r->is_free ? fault_kind::touch_after_free : fault_kind::touch_outside, p, r);
        return r != nullptr;
    }

    /// One fault for all blocks in use, if there are any.
    void report_leaks() noexcept
    {
        std::array<faulty_block, leaks_shown> first;
        std::size_t count = 0;
        std::size_t bytes = 0;
        books_.live().for_each([&](record& r) {
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

    /// Of the fence in front.
    static std::byte* begin_of(const record& r) noexcept
    {
        auto const front = static_cast<std::size_t>(r.data - static_cast<std::byte*>(r.taken.data));
        return r.data - std::min(front, front_max);
    }
    static std::byte* end_of(const record& r) noexcept
    {
        return static_cast<std::byte*>(r.taken.data) + r.taken.bytes;
    }

    static void build_fences(const record& r) noexcept
    {
        std::byte* const block_end = r.data + r.bytes;
        paint(begin_of(r), static_cast<std::size_t>(r.data - begin_of(r)), fill::fence);
        paint(block_end, static_cast<std::size_t>(end_of(r) - block_end), fill::fence);
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

    books_type books_;
    fault_reporter reporter_;
};

} // namespace mallard
