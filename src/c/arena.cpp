// The arenas of the C API.
#include "handle.hpp"

#include <mallard/shared_arena.hpp>

/// The handle of an arena. `expand`, `mark` and `rewind` fail if several threads share the arena,
/// because a shared arena has no marks, and no last block that could be expanded.
struct mallard_arena : mallard::c::handle {
    void* (*allocate)(mallard_arena&, std::size_t bytes, std::size_t align) noexcept = nullptr;

    virtual void free(void*, mallard::layout) noexcept = 0;
    virtual mallard_error expand(void*, std::size_t from, std::size_t to) noexcept = 0;
    virtual mallard_error mark(mallard_mark& out) noexcept = 0;
    virtual mallard_error rewind(const mallard_mark& to) noexcept = 0;

protected:
    ~mallard_arena() = default;
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
struct arena_of final : handle_of<mallard_arena, Blocks> {
    arena_of(origin&& memory, const growth& rule) noexcept
        : handle_of<mallard_arena, Blocks>(std::move(memory), [&](ref<chosen_source> from) {
              return make_blocks<Blocks>(from, rule);
          })
    {
        this->allocate = [](mallard_arena& a, std::size_t bytes,
                            std::size_t align) noexcept -> void* {
            auto& self = static_cast<arena_of&>(a);
            void* const block = self.blocks.try_allocate(verified(bytes, align));
            return block != nullptr ? block : self.refuse("mallard_arena_allocate");
        };
    }

    void destroy() noexcept override { end_handle(*this); }
    void free(void* block, layout l) noexcept override { this->blocks.deallocate(block, l); }
    mallard_error expand(void* block, std::size_t from, std::size_t to) noexcept override
    {
        constexpr const char* function = "mallard_arena_expand";
        if constexpr (!expanding<Blocks>)
            return fail(messages::unsupported_call, function);
        else if (this->blocks.try_expand(block, {from, 1}, {to, 1}))
            return MALLARD_ERROR_NONE;
        else
            return fail(messages::not_in_place, function, from, to);
    }
    mallard_error mark(mallard_mark& out) noexcept override
    {
        if constexpr (rewindable<Blocks>) {
            typename Blocks::mark_type const mark = this->blocks.mark();
            static_assert(sizeof mark <= sizeof out);
            std::memcpy(&out, &mark, sizeof mark);
            return MALLARD_ERROR_NONE;
        } else {
            return fail(messages::unsupported_call, "mallard_arena_mark");
        }
    }
    mallard_error rewind(const mallard_mark& to) noexcept override
    {
        if constexpr (rewindable<Blocks>) {
            typename Blocks::mark_type mark;
            std::memcpy(&mark, &to, sizeof mark);
            this->blocks.rewind(mark);
            return MALLARD_ERROR_NONE;
        } else {
            return fail(messages::unsupported_call, "mallard_arena_rewind");
        }
    }
};

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

/// Serves a call with a null handle or an unusual alignment. The alignment 0 means the default
/// alignment. A null handle or any other invalid argument is an error.
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
        arena->destroy();
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
        arena->free(block, {bytes, align});
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
    return arena->expand(block, old_bytes, new_bytes);
}

int mallard_arena_mark(mallard_arena* arena, mallard_mark* out)
{
    constexpr const char* function = "mallard_arena_mark";
    if (arena == nullptr)
        return c::fail_null(function);
    if (out == nullptr)
        return c::fail(c::messages::null_argument, function, "out", "a mallard_mark");
    return arena->mark(*out);
}

void mallard_arena_rewind(mallard_arena* arena, const mallard_mark* mark)
{
    if (arena != nullptr && mark != nullptr)
        arena->rewind(*mark);
}

void mallard_arena_reset(mallard_arena* arena)
{
    if (arena != nullptr)
        arena->reset();
}

void mallard_arena_release(mallard_arena* arena)
{
    if (arena != nullptr)
        arena->release();
}

void mallard_arena_trim(mallard_arena* arena, size_t keep_bytes)
{
    if (arena != nullptr)
        arena->trim(keep_bytes);
}

int mallard_arena_stats(const mallard_arena* arena, mallard_stats* out)
{
    constexpr const char* function = "mallard_arena_stats";
    if (arena == nullptr)
        return c::fail_null(function);
    return c::write_stats(function, arena->stats(), out);
}
