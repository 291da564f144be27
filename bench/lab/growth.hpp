// Benchmark I of J. Lakos (ACCU 2017): build a data structure, write to it, and destroy it.
#pragma once

#include <bench/clock.hpp>
#include <bench/lab/counters.hpp>
#include <bench/lab/litter.hpp>
#include <bench/lab/structures.hpp>
#include <bench/lab/task.hpp>
#include <bench/lab/text.hpp>

#include <optional>

namespace mallard::bench::lab {

/// How this benchmark measures.
///
/// Faithful: like Lakos's program. A monotonic allocator, alone or below a multipool, begins with a
/// buffer. The pages of the buffer are resident from the start, and each repetition reuses the
/// buffer. A multipool alone has no buffer. The random strings are chosen within the measured time.
/// Sets within sets compare by address. The time is wall time.
///
/// Corrected: all contenders get their memory from the same heap. The first repetition is not timed
/// and brings that heap to its final size. glibc is configured to return no memory to the system;
/// other heaps keep their defaults. The random strings are chosen before the clock starts. Sets
/// within sets compare by content. The time is processor time.
///
/// Returning: like corrected, but glibc returns memory to the system, which is its default. The
/// page faults on that memory are timed.
enum class form { corrected, faithful, returning };

/// The parameters of one process of this benchmark.
struct growth_cell {
    std::size_t structure = 1; ///< 1 to 12, for Lakos's structures DS1 to DS12
    std::size_t size = 64;     ///< elements of the outermost container
    std::size_t elements = 0;  ///< minimum of the total number of insertions
    form how = form::corrected;
    std::size_t litter = 0; ///< frees one block in `litter` before, for gaps in the heap; 0: none

    static constexpr std::size_t inner_size = 128; ///< elements of an inner structure of DS5-DS12

    bool is_nested() const noexcept { return structure > 4; }
    std::size_t elements_of_one() const noexcept { return is_nested() ? size * inner_size : size; }
    std::size_t repetitions() const noexcept
    {
        return std::max<std::size_t>(1, elements / elements_of_one());
    }
    /// Returns the size of the buffer: the bytes that the structure needs with ints or strings as
    /// elements, but at most the size in Lakos's program.
    std::size_t buffer_bytes() const noexcept
    {
        std::size_t const all = elements_of_one() * (structure % 2 == 0 ? 640 : 48);
        return std::min<std::size_t>(all + size * 64 + 4096, std::size_t{1} << 30);
    }
    std::size_t largest_block() const noexcept { return size * 64 + 4096; }
};

using inspect = void (*)(void* state, void const* block, std::size_t bytes);

struct growth_step {
    growth_cell const& cell;
    bool wink_out = false;
    inspect see = nullptr; ///< called for each block before the structure is destroyed
    void* state = nullptr;
};

/// Constructs a `T` with `allocator` and fills it by `fill_it`. Afterwards destroys the `T`. With
/// wink-out, does not destroy the `T`, because the owner of the memory frees the memory.
template <class T, class Allocator, class Fill>
void build(growth_step const& step, Allocator allocator, Fill fill_it)
{
    union room {
        room() {}
        ~room() {}
        T object;
    } made;
    std::uninitialized_construct_using_allocator(&made.object, allocator);
    struct undo {
        T* object;
        ~undo()
        {
            if (object != nullptr)
                std::destroy_at(object);
        }
    } at_end{&made.object};
    made.object.reserve(step.cell.size);
    fill_it(made.object);
    keep(&made.object);
    if (step.see != nullptr) {
        auto const visit = [&](void const* block, std::size_t bytes) {
            step.see(step.state, block, bytes);
        };
        visit_blocks(made.object, visit);
    }
    if (step.wink_out)
        at_end.object = nullptr;
}

template <class Leaf, class Allocator>
void build_leaf(growth_step const& step, Allocator allocator, words& text)
{
    build<Leaf>(step, allocator, [&](Leaf& made) { fill(made, 0, step.cell.size, text); });
}

template <class Outer, class Allocator>
void build_nested(growth_step const& step, Allocator allocator, words& text)
{
    build<Outer>(step, allocator, [&](Outer& made) {
        for (std::size_t i = 0; i < step.cell.size; ++i)
            add_leaf(made, i * growth_cell::inner_size, growth_cell::inner_size, text);
    });
}

template <class Leaf, class Allocator>
void build_around(growth_step const& step, Allocator allocator, words& text)
{
    switch ((step.cell.structure - 1) / 4) {
    case 0:
        return build_leaf<Leaf>(step, allocator, text);
    case 1:
        return build_nested<vector_over<Allocator, Leaf>>(step, allocator, text);
    default:
        if (step.cell.how == form::faithful)
            return build_nested<set_over<Allocator, Leaf, hash_of_address, same_address>>(
                step, allocator, text);
        return build_nested<set_over<Allocator, Leaf, hash_of_content>>(step, allocator, text);
    }
}

template <class Allocator>
void build_one(growth_step const& step, Allocator allocator, words& text)
{
    switch ((step.cell.structure - 1) % 4) {
    case 0:
        return build_around<vector_over<Allocator, int>>(step, allocator, text);
    case 1:
        return build_around<vector_over<Allocator, text_over<Allocator>>>(step, allocator, text);
    case 2:
        return build_around<set_over<Allocator, int, std::hash<int>>>(step, allocator, text);
    default:
        return build_around<set_over<Allocator, text_over<Allocator>, hash_of_text>>(
            step, allocator, text);
    }
}

/// Runs the repetitions of the benchmark under one strategy.
template <class Memory>
class growth_run {
public:
    growth_run(part who, growth_cell const& cell)
        : cell_(cell), wink_out_(who.winks_out()),
          buffer_(cell.how == form::faithful && who.has_monotonic() ? cell.buffer_bytes() : 0),
          words_(cell.how == form::faithful ? words::when::each : words::when::before)
    {
    }

    void repeat(std::size_t times)
    {
        for (std::size_t i = 0; i < times; ++i)
            once();
    }

    /// Runs one repetition. Calls `see(state, block, bytes)` for each block of the structure just
    /// before the structure is destroyed.
    void once(inspect see = nullptr, void* state = nullptr)
    {
        Memory memory({buffer_.all(), cell_.largest_block()});
        build_one(growth_step{cell_, wink_out_, see, state}, memory.allocator(), words_);
        if (wink_out_)
            memory.release();
    }

private:
    growth_cell const& cell_;
    bool wink_out_;
    touched_pages buffer_;
    words words_;
};

/// Writes the figures in this order: ns for one element, page faults for 1,000 elements, the peak
/// in KiB, the KiB after destruction, and (if freed blocks were left in the heap) the fragmentation
/// F.
template <class Memory>
void grow(part who, growth_cell const& cell, figures out)
{
    bool const faithful = cell.how == form::faithful;
    if (cell.how == form::corrected)
        keep_all_memory();
    std::optional<litter> const around = litter::make(cell.litter);
    std::optional<growth_run<Memory>> run(std::in_place, who, cell);
    baseline const before;
    if (!faithful)
        run->once();
    auto const now = [&] { return faithful ? wall_ns() : cpu_ns(); };
    std::size_t const faults = page_faults();
    double const from = now();
    run->repeat(cell.repetitions());
    double const elements = static_cast<double>(cell.repetitions() * cell.elements_of_one());
    out[0] = (now() - from) / elements;
    out[1] = static_cast<double>(page_faults() - faults) * 1000 / elements;
    before.report(out.subspan(2));
    if (!faithful) {
        page_census pages;
        run->once(page_census::see, &pages);
        out[4] = pages.spread();
    }
}

/// Runs the benchmark if called for the contender `who`, and then sets `found`.
struct grow_as {
    part who;
    growth_cell const& cell;
    figures out;
    bool& found;

    template <class Memory>
    void operator()(part candidate) const
    {
        if (candidate != who)
            return;
        found = true;
        grow<Memory>(who, cell, out);
    }
};

// Each of these functions is in a separate translation unit, which instantiates twelve structures
// for one type of allocator.
void grow_on_heap(grow_as const&);
void grow_in_arena(grow_as const&);
void grow_in_multipool(grow_as const&);
void grow_in_multipool_over_arena(grow_as const&);
void grow_behind_abstract_base(grow_as const&);
void grow_in_boost(grow_as const&);
void grow_in_foonathan(grow_as const&);

} // namespace mallard::bench::lab
