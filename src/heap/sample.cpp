#include "sample.hpp"

#include "guests.hpp"
#include "large.hpp"
#include "misuse.hpp"
#include "slice_heap.hpp"
#include "threads.hpp"

#include <mallard/detail/base/sampling.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

namespace mallard::engine {

namespace {

constinit std::atomic<double> rate{0}; ///< 1 / mean distance; 0 while sampling is off

// --- calls to the program ----------------------------------------------------------

/// A thread holds this lock while it calls the program's function. The lock is the first in the
/// lock order, because that function may allocate.
constinit os::lock calls;
constinit std::atomic<const void*> caller{nullptr}; ///< thread that runs the program's function

// The variables below are protected by `calls`.
constinit mallard_sampled told = nullptr;
constinit void* told_context = nullptr;
constinit std::uint32_t generation = 0; ///< grows with each `set_sampling`

bool is_in_call() noexcept
{
    return caller.load(std::memory_order_relaxed) == this_thread();
}

/// A scope in which this thread calls the program's function. Requires that the thread holds
/// `calls`.
class call_scope {
public:
    call_scope() noexcept : errno_before_(errno)
    {
        caller.store(this_thread(), std::memory_order_relaxed);
    }
    call_scope(const call_scope&) = delete;
    call_scope& operator=(const call_scope&) = delete;
    ~call_scope()
    {
        caller.store(nullptr, std::memory_order_relaxed);
        errno = errno_before_;
    }

private:
    int errno_before_;
};

/// Sampled blocks that were freed while another thread forked, linked by `free`. The frees are
/// reported after the fork. The lock `guests` protects this list.
constinit slab* untold = nullptr;

// The record of a sampled block stores the size and weight of the block where a slab has its links.
void set_note(slab& s, std::size_t bytes, double weight) noexcept
{
    s.next = std::bit_cast<slab*>(bytes);
    s.previous = std::bit_cast<slab*>(weight);
}
mallard_sample sample_in(slab const& s) noexcept
{
    return {.block = s.start,
            .bytes = std::bit_cast<std::size_t>(s.next),
            .weight_bytes = std::bit_cast<double>(s.previous)};
}

/// Returns how many usable bytes the block would have if it were not sampled.
std::size_t usable_bytes_of(std::size_t asked) noexcept
{
    return asked <= classed_bytes_max ? shapes[block_class::of(asked)].usable_bytes()
                                      : align_up(asked, slice_bytes);
}

/// Reports an event to the program's function, unless the block's allocation was reported to an
/// earlier function. Requires that the thread holds `calls`.
void tell(enum mallard_sample_event what, slab& s) noexcept
{
    if (what == MALLARD_SAMPLE_ALLOCATED)
        s.chunk_next = generation;
    mallard_sample const one = sample_in(s);
    if (told != nullptr && s.chunk_next == generation)
        told(told_context, what, &one);
}

/// Reports the event. If another thread is forking, reports nothing and returns false.
bool tell_unless_forked(enum mallard_sample_event what, slab& s) noexcept
{
    if (!calls.take_unless_kept())
        return false;
    {
        call_scope const now;
        tell(what, s);
    }
    calls.give();
    return true;
}

/// Claims a sampled block that this thread is about to free or resize. If several threads do so at
/// the same time, stops the process. Returns false if the program's function itself frees or
/// resizes the block, because then nothing is reported.
bool take_over(found_block const& b, const char* call) noexcept
{
    if (!b.in->change(b.slice, entry_sampled, entry_inside))
        stop_at_double_free(b.in->address_of(b.slice), call);
    return !is_in_call();
}

[[gnu::cold, gnu::noinline]] void* allocate_sample(sampling_decoy& decoy, double means,
                                                   std::size_t bytes, std::size_t align,
                                                   bool* zero) noexcept
{
    decoy.left = sampling::draw_distance(decoy.random);
    if (is_in_call())
        return nullptr;
    slab* const s = take_span_for_block(usable_bytes_of(bytes), align, entry_sampled, zero);
    if (s == nullptr)
        return nullptr;
    set_note(*s, bytes, static_cast<double>(bytes) / sampling::chance(means));
    if (tell_unless_forked(MALLARD_SAMPLE_ALLOCATED, *s))
        return s->start;
    reservation& in = *reservation_of(s->start);
    the_slice_heap.give(in, in.slice_of(s->start), s->slices);
    if (zero != nullptr)
        *zero = false; // the value was for the span that was just freed
    return nullptr;
}

/// Samples the first allocation of a thread that has no cache yet.
[[gnu::cold, gnu::noinline]] void* sample_first(std::size_t bytes, std::size_t align,
                                                bool* zero) noexcept
{
    bool const is_on = rate.load(std::memory_order_relaxed) != 0;
    return is_on && own_cache() != nullptr && shown_cache()->real != nullptr
               ? sample(shown_cache(), bytes, align, zero)
               : nullptr;
}

} // namespace

void set_up_sampling_decoy(sampling_decoy& decoy, thread_cache& cache) noexcept
{
    decoy.tag = cache.tag;
    decoy.key = cache.key;
    decoy.real = &cache;
    decoy.random = os::random_bits();
    decoy.left = sampling::draw_distance(decoy.random);
}

void* sample_in_decoy(thread_cache* cache, std::size_t bytes, std::size_t align,
                      bool* zero) noexcept
{
    if (cache->real == nullptr) [[unlikely]]
        return sample_first(bytes, align, zero);
    auto& decoy = static_cast<sampling_decoy&>(*cache);
    bytes += bytes == 0;
    double const means = static_cast<double>(bytes) * rate.load(std::memory_order_relaxed);
    decoy.left -= means;
    if (decoy.left >= 0) [[likely]]
        return nullptr;
    return allocate_sample(decoy, means, bytes, align, zero);
}

void free_sample(found_block const& b) noexcept
{
    slab& s = b.in->slabs[b.slice];
    if (take_over(b, "free")) {
        access const alone(calls);
        if (alone.is_guest()) {
            s.free = std::exchange(untold, &s);
            return;
        }
        call_scope const now;
        tell(MALLARD_SAMPLE_FREED, s);
    }
    the_slice_heap.give(*b.in, b.slice, s.slices);
}

std::size_t sample_bytes(found_block const& b) noexcept
{
    return usable_bytes_of(sample_in(b.in->slabs[b.slice]).bytes);
}

void resize_sample(found_block const& b, std::size_t bytes) noexcept
{
    slab& s = b.in->slabs[b.slice];
    mallard_sample const before = sample_in(s);
    bool const is_told = take_over(b, "realloc") && calls.take_unless_kept();
    if (is_told) {
        call_scope const now;
        tell(MALLARD_SAMPLE_FREED, s);
        double const times = static_cast<double>(bytes) / static_cast<double>(before.bytes);
        set_note(s, bytes, before.weight_bytes * times);
        if (s.chunk_next == generation)
            tell(MALLARD_SAMPLE_ALLOCATED, s);
    }
    if (is_told)
        calls.give();
    b.in->mark(b.slice, 1, entry_sampled);
}

int set_sampling(std::size_t mean_bytes, mallard_sampled call, void* context) noexcept
{
    if (is_in_call())
        return EDEADLK;
    os::hold const alone(calls);
    call_scope const now;
    bool const on = mean_bytes != 0;
    if (!show_sampling_decoys(on))
        return ENOMEM;
    told = on ? call : nullptr;
    told_context = context;
    generation += 1;
    rate.store(on ? 1 / static_cast<double>(mean_bytes) : 0, std::memory_order_relaxed);
    return 0;
}

void take_sample_lock() noexcept
{
    calls.take();
}
void keep_sample_lock() noexcept
{
    calls.keep();
}

void open_sample_lock() noexcept
{
    for (;;) {
        slab* s = nullptr;
        {
            os::hold const no_guest_is_here(guests);
            s = std::exchange(untold, nullptr);
            if (s == nullptr)
                return calls.open();
        }
        call_scope const now;
        while (s != nullptr) {
            slab& freed = *s;
            s = static_cast<slab*>(freed.free);
            tell(MALLARD_SAMPLE_FREED, freed);
            reservation& in = *reservation_of(freed.start);
            the_slice_heap.give(in, in.slice_of(freed.start), freed.slices);
        }
    }
}

void reset_sample_lock() noexcept
{
    untold = nullptr;
    calls.reset();
}

} // namespace mallard::engine
