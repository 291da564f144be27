#include "instance.hpp"

#include "../os/ticks_linux.hpp"

#include <algorithm>

namespace mallard::plan {

constinit rule_state rules[mallard_plan_rules_max]{};
constinit bin no_bin{};

namespace {

/// The largest number of chunks without blocks that an arena retains.
constexpr std::size_t spare_max = 16;
/// The blocks that `cut_page` cuts together are in one page of this size.
constexpr std::uintptr_t page_bytes = 4096;
/// The minimum number of frees between two resets of a multipool. A reset is expensive, because it
/// visits all chunks.
constexpr std::uint64_t frees_min = 4096;

/// Allocates a chunk for the instance. Returns null if the rule has reached `held_max`, or if the
/// system supplies no memory.
chunk* take_chunk_for(chunk_use const& use, bool is_first) noexcept
{
    rule_state& rule = *use.owner->rule;
    bool const raises_limit = is_first && rule.held_max.load(std::memory_order_relaxed) != SIZE_MAX;
    if (raises_limit)
        rule.held_max.fetch_add(chunk_bytes, std::memory_order_relaxed);
    std::size_t const held =
        rule.held.fetch_add(chunk_bytes, std::memory_order_relaxed) + chunk_bytes;
    bool const is_too_much = held > rule.held_max.load(std::memory_order_relaxed);
    chunk* const c = is_too_much ? nullptr : take_chunk(use);
    if (c == nullptr) {
        rule.held.fetch_sub(chunk_bytes, std::memory_order_relaxed);
        if (raises_limit)
            rule.held_max.fetch_sub(chunk_bytes, std::memory_order_relaxed);
        return nullptr;
    }
    std::size_t peak = rule.held_peak.load(std::memory_order_relaxed);
    while (held > peak &&
           !rule.held_peak.compare_exchange_weak(peak, held, std::memory_order_relaxed))
        ;
    return c;
}

/// Subtracts the blocks that other threads have freed from the counts of live blocks.
void count_touched(instance& in) noexcept
{
    chunk* c = in.touched.exchange(nullptr, std::memory_order_acquire);
    while (c != nullptr) {
        // Read `next_touched` first, because after the exchange below, another thread may push the
        // chunk again.
        chunk* const after = c->next_touched;
        std::uint32_t const freed = c->freed_elsewhere.exchange(0, std::memory_order_acq_rel);
        c->live -= freed;
        in.live -= freed;
        if (c->live == 0)
            empty(in, *c);
        c = after;
    }
}

/// Makes `c` the chunk from which the arena cuts blocks.
void use(instance& in, chunk& c) noexcept
{
    bin& b = in.bins[0];
    b.current = &c;
    b.top = c.first() + arena_header_bytes;
    b.end = c.end();
}

/// Moves the blocks that other threads have freed into their free lists.
void collect_returned(instance& in) noexcept
{
    free_block* block = in.returned.exchange(nullptr, std::memory_order_acquire);
    while (block != nullptr) {
        free_block* const after = block->next;
        push(*chunk_of(block).list, block);
        in.live -= 1;
        block = after;
    }
}

std::size_t index_of(instance const& in, bin const& b) noexcept
{
    return static_cast<std::size_t>(&b - in.bins);
}

free_block*& list_of(instance const& in, bin& b) noexcept
{
    return in.allocator == mallard_plan_multipool_over_arena ? b.counted : b.free;
}

std::size_t block_bytes_of(instance const& in, bin const& b) noexcept
{
    return in.allocator == mallard_plan_pool ? (in.rule->block_bytes + 15U) & ~15U
                                             : block_classes::bytes(index_of(in, b));
}

std::uintptr_t quick_thread_of(instance const& in, std::uintptr_t how) noexcept
{
    if (!in.rule->is_quick)
        return no_thread;
    return reinterpret_cast<std::uintptr_t>(in.thread) + how;
}

chunk_use use_for(instance& in, bin& b) noexcept
{
    free_block** const list = &list_of(in, b);
    return {
        .quick_thread = quick_thread_of(in, list == &b.counted ? counting : 0),
        .list = list,
        .blocks = &b,
        .owner = &in,
        .block_bytes = static_cast<std::uint32_t>(block_bytes_of(in, b)),
    };
}

/// Makes `c` the chunk from which the bin cuts blocks.
void use(chunk& c, bin& b) noexcept
{
    b.fresh = c.first();
    std::size_t const room = static_cast<std::size_t>(c.end() - b.fresh);
    b.fresh_end = b.fresh + room / c.block_bytes * c.block_bytes;
}

/// Allocates a block from an arena whose current chunk has no room.
void* take_of_arena(instance& in, std::size_t bytes) noexcept
{
    count_touched(in); // may empty the current chunk
    bin& b = in.bins[0];
    if (void* const block = cut(b, bytes))
        return block;
    chunk* c = in.spare;
    if (c != nullptr) {
        in.spare = c->next;
        in.spare_count -= 1;
    } else {
        std::uintptr_t const quick_thread = quick_thread_of(in, in_arena);
        chunk_use const use_of_arena{quick_thread, nullptr, nullptr, &in, 0};
        c = take_chunk_for(use_of_arena, b.current == nullptr);
        if (c == nullptr)
            return nullptr;
    }
    use(in, *c);
    return cut(b, bytes);
}

/// Cuts blocks from the chunk of the bin up to the end of a page, so that no other page is touched
/// before the program needs it. Returns the first block, and makes the others the free list, which
/// must be empty. The chunk must have room for at least one block.
void* cut_page(instance const& in, bin& b) noexcept
{
    std::size_t const bytes = block_bytes_of(in, b);
    std::byte* const first = b.fresh;
    b.fresh += bytes;
    auto const last = reinterpret_cast<std::uintptr_t>(b.fresh) - 1;
    std::size_t const left = ~last & (page_bytes - 1);
    std::size_t const room = std::min(left, static_cast<std::size_t>(b.fresh_end - b.fresh));
    free_block** end = &list_of(in, b);
    for (std::size_t more = room / bytes; more != 0; --more) {
        auto* const block = reinterpret_cast<free_block*>(b.fresh);
        b.fresh += bytes;
        *end = block;
        end = &block->next;
    }
    *end = nullptr;
    return first;
}

/// Allocates a block from a pool whose free list is empty.
void* take_of_pool(instance& in, std::size_t bytes) noexcept
{
    bin& b = in.bin_for(bytes);
    b.owner = &in;
    if (b.fresh == b.fresh_end && in.returned.load(std::memory_order_relaxed) != nullptr)
        collect_returned(in);
    if (free_block*& list = list_of(in, b); list != nullptr)
        return pop(list);
    if (b.fresh == b.fresh_end) {
        chunk* const c = take_chunk_for(use_for(in, b), b.fresh_end == nullptr);
        if (c == nullptr)
            return nullptr;
        c->next = in.chunks;
        in.chunks = c;
        use(*c, b);
    }
    return cut_page(in, b);
}

} // namespace

void* take_slowly(instance& in, std::size_t bytes) noexcept
{
    void* const block =
        in.allocator == mallard_plan_arena ? take_of_arena(in, bytes) : take_of_pool(in, bytes);
    in.live += block != nullptr;
    return block;
}

[[gnu::noinline]] void empty(instance& in, chunk& c) noexcept
{
    if (&c == in.bins[0].current)
        return use(in, c);
    if (in.spare_count == spare_max) {
        in.rule->held.fetch_sub(chunk_bytes, std::memory_order_relaxed);
        return give_chunk(c);
    }
    c.next = in.spare;
    in.spare = &c;
    in.spare_count += 1;
}

/// Resets a multipool over an arena. Discards all free lists, and cuts blocks again from the start
/// of the chunks. Frees all chunks except one of each size class.
[[gnu::noinline]] void start_anew(instance& in) noexcept
{
    if (in.allocator != mallard_plan_multipool_over_arena || in.frees - in.frees_before < frees_min)
        return;
    in.frees_before = in.frees;
    chunk* c = in.chunks;
    in.chunks = nullptr;
    for (bin& b : in.bins)
        b.counted = nullptr;
    bool has_chunk[class_count]{};
    while (c != nullptr) {
        chunk* const after = c->next;
        bool& has_this = has_chunk[index_of(in, *c->blocks)];
        if (has_this) {
            in.rule->held.fetch_sub(chunk_bytes, std::memory_order_relaxed);
            give_chunk(*c);
        } else {
            has_this = true;
            c->next = in.chunks;
            in.chunks = c;
            use(*c, *c->blocks);
        }
        c = after;
    }
}

void give_from_elsewhere(instance& in, chunk& c, void* block) noexcept
{
    if (c.block_bytes == 0) {
        if (c.freed_elsewhere.fetch_add(1, std::memory_order_acq_rel) != 0)
            return;
        chunk* first = in.touched.load(std::memory_order_relaxed);
        do
            c.next_touched = first;
        while (!in.touched.compare_exchange_weak(first, &c, std::memory_order_release,
                                                 std::memory_order_relaxed));
        return;
    }
    auto* const freed = static_cast<free_block*>(block);
    free_block* first = in.returned.load(std::memory_order_relaxed);
    do
        freed->next = first;
    while (!in.returned.compare_exchange_weak(first, freed, std::memory_order_release,
                                              std::memory_order_relaxed));
}

namespace {

constinit bool has_counter = false;
constinit std::uint64_t first_tick = 0;
constinit std::uint64_t first_ns = 0;

std::uint64_t ticks_now() noexcept
{
    return has_counter ? os::ticks() : os::monotonic_ns();
}

} // namespace

void begin_ticks() noexcept
{
    has_counter = os::has_constant_ticks();
    first_tick = ticks_now();
    first_ns = os::monotonic_ns();
}

double nanoseconds_per_tick() noexcept
{
    std::uint64_t const ticks = ticks_now() - first_tick;
    std::uint64_t const ns = os::monotonic_ns() - first_ns;
    return ticks != 0 ? static_cast<double>(ns) / static_cast<double>(ticks) : 1;
}

void give_timed(instance& in, chunk& c, void* block) noexcept
{
    ending& end = in.end_of;
    std::uint64_t const now = ticks_now();
    if (end.begin == 0 || now - end.last > ending_pause_max) {
        end.begin = now;
        end.row = 0;
    }
    end.last = now;
    end.row += 1;
    give(in, c, block);
    if (in.live == 0) {
        end.ticks.add(ticks_now() - end.begin);
        end.frees.add(end.row);
        end.sequences.add(1);
        end.begin = 0;
    }
}

void take_freed_elsewhere(instance& in) noexcept
{
    if (in.touched.load(std::memory_order_relaxed) != nullptr)
        count_touched(in);
    if (in.returned.load(std::memory_order_relaxed) != nullptr)
        collect_returned(in);
}

void forget_freed_elsewhere(instance& in) noexcept
{
    in.touched.store(nullptr, std::memory_order_relaxed);
    in.returned.store(nullptr, std::memory_order_relaxed);
}

bool extend(instance& in, chunk& c, void* block, std::size_t bytes) noexcept
{
    auto* const at = static_cast<std::byte*>(block);
    auto& size = reinterpret_cast<std::uint64_t*>(at)[-1];
    std::size_t const room = room_of(bytes) - arena_header_bytes;
    bin& b = in.bins[0];
    if (&c != b.current || at + size != b.top || at + room > b.end || room < size)
        return false;
    size = room;
    b.top = at + room;
    return true;
}

} // namespace mallard::plan
