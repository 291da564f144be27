// The arenas of the C API.
#include "handle.hpp"

#include <mallard/shared_arena.hpp>

namespace mallard::c {
namespace {

/// The functions of an arena that are called through a second pointer. An arena of many threads has
/// no marks, and does not know which block is the last.
struct arena_functions {
    void (*destroy)(mallard_arena&) noexcept;
    void (*free)(mallard_arena&, void*, layout) noexcept;
    bool (*expand)(mallard_arena&, void*, layout from, layout to) noexcept; // may be null
    void (*mark)(mallard_arena&, mallard_mark&) noexcept;                   // may be null
    void (*rewind)(mallard_arena&, const mallard_mark&) noexcept;           // may be null
    void (*reset)(mallard_arena&) noexcept;
    void (*release)(mallard_arena&) noexcept;
    void (*trim)(mallard_arena&, std::size_t keep) noexcept;
    statistics (*stats)(const mallard_arena&) noexcept;
};

} // namespace
} // namespace mallard::c

struct mallard_arena {
    void* (*allocate)(mallard_arena&, std::size_t bytes, std::size_t align) noexcept;
    const mallard::c::arena_functions* rest;
};

namespace mallard::c {
namespace {

constexpr arena_options options_with(check checks) noexcept
{
    return {.grow = growth::at_run_time(), .checks = checks};
}

template <check Checks>
using plain_arena = arena<ref<chosen_source>, options_with(Checks)>;
template <check Checks>
using threads_arena = shared_arena<ref<chosen_source>, options_with(Checks)>;

template <class Blocks>
Blocks make_blocks(ref<chosen_source> from, const growth& rule) noexcept
{
    if constexpr (std::constructible_from<Blocks, growth, ref<chosen_source>>)
        return Blocks(rule, from);
    else
        return Blocks(from, rule);
}

template <class Blocks>
struct alignas(cache_line_bytes) arena_of : mallard_arena {
    Blocks blocks;
    origin its;

    arena_of(origin&& memory, const growth& rule) noexcept;
};

/// The arena of a handle.
template <class Arena>
Arena& in(mallard_arena& a) noexcept
{
    return static_cast<Arena&>(a);
}
template <class Arena>
const Arena& in(const mallard_arena& a) noexcept
{
    return static_cast<const Arena&>(a);
}

template <class Arena>
[[gnu::cold, gnu::noinline]] void* refuse(const mallard_arena& a) noexcept
{
    in<Arena>(a).its.fail_allocation("mallard_arena_allocate");
    return nullptr;
}

template <class Arena>
void* allocate_in(mallard_arena& a, std::size_t bytes, std::size_t align) noexcept
{
    void* const block = in<Arena>(a).blocks.try_allocate(verified(bytes, align));
    return block != nullptr ? block : refuse<Arena>(a);
}

template <class Arena>
constexpr arena_functions functions_of = [] {
    arena_functions f{
        .destroy = [](mallard_arena& a) noexcept { end_handle(in<Arena>(a)); },
        .free = [](mallard_arena& a, void* block,
                   layout l) noexcept { in<Arena>(a).blocks.deallocate(block, l); },
        .expand = nullptr,
        .mark = nullptr,
        .rewind = nullptr,
        .reset = [](mallard_arena& a) noexcept { in<Arena>(a).blocks.reset(); },
        .release = [](mallard_arena& a) noexcept { in<Arena>(a).blocks.release(); },
        .trim = [](mallard_arena& a, std::size_t keep) noexcept { in<Arena>(a).blocks.trim(keep); },
        .stats = [](const mallard_arena& a) noexcept { return in<Arena>(a).blocks.stats(); },
    };
    using blocks = decltype(Arena::blocks);
    if constexpr (expanding<blocks>)
        f.expand = [](mallard_arena& a, void* block, layout from, layout to) noexcept {
            return in<Arena>(a).blocks.try_expand(block, from, to);
        };
    if constexpr (rewindable<blocks>) {
        using mark_type = typename blocks::mark_type;
        static_assert(sizeof(mark_type) <= sizeof(mallard_mark));
        f.mark = [](mallard_arena& a, mallard_mark& out) noexcept {
            mark_type const mark = in<Arena>(a).blocks.mark();
            std::memcpy(&out, &mark, sizeof mark);
        };
        f.rewind = [](mallard_arena& a, const mallard_mark& to) noexcept {
            mark_type mark;
            std::memcpy(&mark, &to, sizeof mark);
            in<Arena>(a).blocks.rewind(mark);
        };
    }
    return f;
}();

template <class Blocks>
arena_of<Blocks>::arena_of(origin&& memory, const growth& rule) noexcept
    : mallard_arena{allocate_in<arena_of>, &functions_of<arena_of>},
      blocks(make_blocks<Blocks>(its.from, rule)), its(std::move(memory))
{
}

template <template <check> class Blocks>
mallard_arena* make(const char* function, const choice& chosen) noexcept
{
    if (chosen.checks == check::on)
        return make_handle<arena_of<Blocks<check::on>>>(function, chosen);
    return make_handle<arena_of<Blocks<check::off>>>(function, chosen);
}

mallard_arena* make(const char* function, const choice& chosen) noexcept
{
    switch (chosen.threads) {
    case sync::none:
        return make<plain_arena>(function, chosen);
    case sync::thread_cached:
        return make<threads_arena>(function, chosen);
    default:
        fail(messages::unsupported_sync, function, "an arena",
             sync_names[static_cast<std::size_t>(chosen.threads)],
             sync_names[MALLARD_SYNC_THREAD_CACHED]);
        return nullptr;
    }
}

[[gnu::cold]] mallard_error fail_null(const char* function) noexcept
{
    return fail(messages::null_handle, function, "arena", "mallard_arena_create");
}

/// Allocates with unusual arguments: alignment 0 means the default; others are errors.
[[gnu::noinline]] void* allocate_with_care(mallard_arena* arena, std::size_t bytes,
                                           std::size_t align) noexcept
{
    if (arena != nullptr && align == 0)
        return arena->allocate(*arena, bytes, alignof(std::max_align_t));
    if (arena == nullptr)
        fail_null("mallard_arena_allocate");
    else
        fail(messages::bad_align, "mallard_arena_allocate", align);
    return nullptr;
}

} // namespace
} // namespace mallard::c

using namespace mallard;

mallard_arena* mallard_arena_create(const mallard_arena_options* options)
{
    constexpr const char* function = "mallard_arena_create";
    mallard_arena_options o;
    c::choice chosen;
    if (!c::read_struct(function, "mallard_arena_options", options, o))
        return nullptr;
    if (o.reserved != 0) {
        c::fail(c::messages::reserved, function, o.reserved);
        return nullptr;
    }
    if (!c::read_choice(function, c::common_of(o), arena_options().grow, chosen))
        return nullptr;
    if (chosen.threads != sync::none)
        chosen.fills_buffer = false; // the threads share the buffer
    return c::make(function, chosen);
}

void mallard_arena_destroy(mallard_arena* arena)
{
    if (arena != nullptr)
        arena->rest->destroy(*arena);
}

void* mallard_arena_allocate(mallard_arena* arena, size_t bytes, size_t align)
{
    if (arena == nullptr || !is_power_of_two(align)) [[unlikely]]
        return c::allocate_with_care(arena, bytes, align);
    return arena->allocate(*arena, bytes, align);
}

void mallard_arena_free(mallard_arena* arena, void* block, size_t bytes, size_t align)
{
    if (arena == nullptr || block == nullptr)
        return;
    if (align == 0)
        align = alignof(std::max_align_t);
    if (is_power_of_two(align))
        arena->rest->free(*arena, block, {bytes, align});
    else
        c::fail(c::messages::bad_align, "mallard_arena_free", align);
}

int mallard_arena_expand(mallard_arena* arena, void* block, size_t old_bytes, size_t new_bytes)
{
    constexpr const char* function = "mallard_arena_expand";
    if (arena == nullptr)
        return c::fail_null(function);
    if (block == nullptr)
        return c::fail(c::messages::null_argument, function, "block", "the block");
    if (arena->rest->expand == nullptr)
        return c::fail(c::messages::unsupported_call, function);
    if (arena->rest->expand(*arena, block, {old_bytes, 1}, {new_bytes, 1}))
        return MALLARD_ERROR_NONE;
    return c::fail(c::messages::not_in_place, function, old_bytes, new_bytes);
}

int mallard_arena_mark(mallard_arena* arena, mallard_mark* out)
{
    constexpr const char* function = "mallard_arena_mark";
    if (arena == nullptr)
        return c::fail_null(function);
    if (out == nullptr)
        return c::fail(c::messages::null_argument, function, "out", "a mallard_mark");
    if (arena->rest->mark == nullptr)
        return c::fail(c::messages::unsupported_call, function);
    arena->rest->mark(*arena, *out);
    return MALLARD_ERROR_NONE;
}

void mallard_arena_rewind(mallard_arena* arena, const mallard_mark* mark)
{
    if (arena == nullptr || mark == nullptr)
        return;
    if (arena->rest->rewind != nullptr)
        arena->rest->rewind(*arena, *mark);
    else
        c::fail(c::messages::unsupported_call, "mallard_arena_rewind");
}

void mallard_arena_reset(mallard_arena* arena)
{
    if (arena != nullptr)
        arena->rest->reset(*arena);
}

void mallard_arena_release(mallard_arena* arena)
{
    if (arena != nullptr)
        arena->rest->release(*arena);
}

void mallard_arena_trim(mallard_arena* arena, size_t keep_bytes)
{
    if (arena != nullptr)
        arena->rest->trim(*arena, keep_bytes);
}

int mallard_arena_stats(const mallard_arena* arena, mallard_stats* out)
{
    constexpr const char* function = "mallard_arena_stats";
    if (arena == nullptr)
        return c::fail_null(function);
    return c::write_stats(function, arena->rest->stats(*arena), out);
}
