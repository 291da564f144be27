#include "instance.hpp"

#include "../os/ticks_linux.hpp"

#include <algorithm>

namespace mallard::plan {

constinit rule_state rules[mallard_plan_rules_max]{};

namespace {

/// An arena without blocks keeps so many chunks.
constexpr std::size_t spare_max = 16;
/// So many blocks at least lie between two new starts of a multipool, which visit all chunks.
constexpr std::uint64_t blocks_min = 4096;

/// Takes a chunk for the instance. Null: the rule holds as much as it may, or the system refused.
chunk* take_chunk_for(instance& in, bool is_first) noexcept
{
    rule_state& rule = *in.rule;
    bool const raises_limit = is_first && rule.held_max.load(std::memory_order_relaxed) != SIZE_MAX;
    if (raises_limit)
        rule.held_max.fetch_add(chunk_bytes, std::memory_order_relaxed);
    std::size_t const held =
        rule.held.fetch_add(chunk_bytes, std::memory_order_relaxed) + chunk_bytes;
    bool const is_too_much = held > rule.held_max.load(std::memory_order_relaxed);
    chunk* const c = is_too_much ? nullptr : take_chunk();
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
    c->owner = &in;
    c->block_class = c->block_bytes = c->live = 0;
    c->next = c->next_touched = nullptr;
    return c;
}

/// Subtracts the blocks that other threads have freed.
void count_touched(instance& in) noexcept
{
    chunk* c = in.touched.exchange(nullptr, std::memory_order_acquire);
    while (c != nullptr) {
        // Read first: after the exchange another thread may push the chunk again.
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
    in.current = &c;
    in.top = c.first() + arena_header_bytes;
    in.end = c.end();
}

/// Puts the blocks that other threads have freed into their lists.
void collect_returned(instance& in) noexcept
{
    free_block* block = in.returned.exchange(nullptr, std::memory_order_acquire);
    while (block != nullptr) {
        free_block* const after = block->next;
        instance::bin& bin = in.bins[chunk_of(block).block_class];
        block->next = bin.free;
        bin.free = block;
        in.live -= 1;
        block = after;
    }
}

std::size_t bytes_of_class(instance const& in, std::size_t index) noexcept
{
    return in.allocator == mallard_plan_pool ? (in.rule->block_bytes + 15U) & ~15U
                                             : block_classes::bytes(index);
}

void use_for_class(instance& in, chunk& c, std::size_t index) noexcept
{
    instance::bin& bin = in.bins[index];
    bin.top = c.first();
    std::size_t const bytes = bytes_of_class(in, index);
    bin.end = bin.top + static_cast<std::size_t>(c.end() - bin.top) / bytes * bytes;
    c.block_class = static_cast<std::uint32_t>(index);
    c.block_bytes = static_cast<std::uint32_t>(bytes);
}

/// Allocates a block of an arena whose current chunk is used up.
void* take_of_arena(instance& in, std::size_t bytes) noexcept
{
    count_touched(in); // may empty the current chunk
    std::size_t const room = room_of(bytes);
    if (in.current == nullptr || room > static_cast<std::size_t>(in.end - in.top)) {
        chunk* c = in.spare;
        if (c != nullptr) {
            in.spare = c->next;
            in.spare_count -= 1;
        } else {
            c = take_chunk_for(in, in.current == nullptr);
            if (c == nullptr)
                return nullptr;
        }
        use(in, *c);
    }
    return cut(in, room);
}

/// Allocates a block of a pool whose list is empty.
void* take_of_pool(instance& in, std::size_t bytes) noexcept
{
    std::size_t const index = in.allocator == mallard_plan_pool ? 0 : class_of(bytes);
    instance::bin& bin = in.bins[index];
    if (bin.top == bin.end && in.returned.load(std::memory_order_relaxed) != nullptr)
        collect_returned(in);
    free_block* block = bin.free;
    if (block != nullptr) {
        bin.free = block->next;
    } else {
        if (bin.top == bin.end) {
            chunk* const c = take_chunk_for(in, bin.end == nullptr);
            if (c == nullptr)
                return nullptr;
            c->next = in.chunks;
            in.chunks = c;
            use_for_class(in, *c, index);
        }
        block = reinterpret_cast<free_block*>(bin.top);
        bin.top += bytes_of_class(in, index);
    }
    in.live += 1;
    return block;
}

} // namespace

void* take_slowly(instance& in, std::size_t bytes) noexcept
{
    return in.allocator == mallard_plan_arena ? take_of_arena(in, bytes) : take_of_pool(in, bytes);
}

[[gnu::noinline]] void empty(instance& in, chunk& c) noexcept
{
    if (&c == in.current)
        return use(in, c);
    if (in.spare_count == spare_max) {
        in.rule->held.fetch_sub(chunk_bytes, std::memory_order_relaxed);
        return give_chunk(c);
    }
    c.next = in.spare;
    in.spare = &c;
    in.spare_count += 1;
}

/// Forgets all free blocks, and cuts blocks again from the begin of the chunks. Chunks beyond the
/// first of each class go back.
[[gnu::noinline]] void start_anew(instance& in) noexcept
{
    if (in.allocator != mallard_plan_multipool_over_arena ||
        in.blocks.value() - in.blocks_before < blocks_min)
        return;
    in.blocks_before = in.blocks.value();
    chunk* c = in.chunks;
    in.chunks = nullptr;
    for (instance::bin& bin : in.bins)
        bin.free = nullptr;
    bool has_chunk[class_count]{};
    while (c != nullptr) {
        chunk* const after = c->next;
        if (has_chunk[c->block_class]) {
            in.rule->held.fetch_sub(chunk_bytes, std::memory_order_relaxed);
            give_chunk(*c);
        } else {
            has_chunk[c->block_class] = true;
            c->next = in.chunks;
            in.chunks = c;
            use_for_class(in, *c, c->block_class);
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

void give_timed(instance& in, chunk& c, void* block) noexcept
{
    ending& end = in.end_of;
    if (end.begin == 0) {
        end.begin = os::monotonic_ns();
        end.row = 0;
    }
    end.row += 1;
    give(in, c, block);
    if (in.live == 0) {
        end.nanoseconds.add(os::monotonic_ns() - end.begin);
        end.frees.add(end.row);
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
    if (&c != in.current || at + size != in.top || at + room > in.end || room < size)
        return false;
    size = room;
    in.top = at + room;
    return true;
}

} // namespace mallard::plan
