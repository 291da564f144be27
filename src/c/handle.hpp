// Creates and destroys the handles of the C API.
//
// A handle is stored in the first memory that its allocator requests from the source. So if a
// program selects a source, all memory of the allocator comes from that source, including the
// handle.
#pragma once

#include "options.hpp"

#include <array>
#include <memory>

namespace mallard::c {

/// The number of thread modes (values of `sync`) for which the library is compiled. These are the
/// first values of the enumeration.
inline constexpr std::size_t sync_modes = 4;
inline constexpr const char* sync_names[] = {"MALLARD_SYNC_NONE", "MALLARD_SYNC_MUTEX",
                                             "MALLARD_SYNC_LOCK_FREE",
                                             "MALLARD_SYNC_THREAD_CACHED"};

/// The source of the memory of an allocator and its handle, and the chunk that contains the handle.
struct origin {
    chosen_source from;
    chunk self;
    std::size_t limit;

    mallard_error fail_allocation(const char* function) const noexcept
    {
        return from.fail_allocation(function, limit);
    }
};

/// Creates a `Handle` from a source, a growth rule and the other `arguments`. Returns null if the
/// source has no memory.
template <class Handle, class... Arguments>
Handle* make_handle(const char* function, const choice& chosen, Arguments... arguments) noexcept
{
    origin its{chosen_source(chosen.from), {}, chosen.rule.limit};
    its.self = its.from.try_take_handle(layout_of<Handle>());
    void* const at = its.self.data;
    if (at == nullptr) {
        its.fail_allocation(function);
        return nullptr;
    }
    growth rule = chosen.rule;
    if (chosen.fills_buffer)
        rule = growth::none(std::min(its.from.bytes_left(), rule.limit));
    return ::new (at) Handle(std::move(its), rule, arguments...);
}

/// Destroys a handle. The type `Handle` must have its allocator in the member `blocks`, and the
/// source of its memory in the member `its`.
template <class Handle>
void end_handle(Handle& handle) noexcept
{
    handle.blocks.release(); // frees the chunks before the source is moved
    origin its = std::move(handle.its);
    std::destroy_at(&handle);
    its.from.give_handle(its.self);
}

/// The base of all kinds of handles. Most functions are virtual. The few functions that must be
/// fast are called through function pointers in the handle, which saves a load.
struct handle {
    virtual void destroy() noexcept = 0;
    virtual void reset() noexcept = 0;
    virtual void release() noexcept = 0;
    virtual void trim(std::size_t keep) noexcept = 0;
    virtual statistics stats() const noexcept = 0;

protected:
    ~handle() = default;
};

/// A handle of the kind `Interface`. Its allocator has the type `Blocks`, and is the result of
/// `make_blocks(source)`.
template <class Interface, class Blocks>
struct alignas(false_sharing_bytes) handle_of : Interface {
    Blocks blocks;
    origin its;

    template <class Make>
    handle_of(origin&& memory, Make make_blocks) noexcept
        : blocks(make_blocks(ref(its.from))), its(std::move(memory))
    {
    }

    void reset() noexcept final { blocks.reset(); }
    void release() noexcept final { blocks.release(); }
    void trim(std::size_t keep) noexcept final { blocks.trim(keep); }
    statistics stats() const noexcept final { return blocks.stats(); }

    /// Records why an allocation failed, and returns null.
    [[gnu::cold, gnu::noinline]] void* refuse(const char* function) const noexcept
    {
        its.fail_allocation(function);
        return nullptr;
    }

protected:
    ~handle_of() = default;
};

/// Makes a layout without a check. Requires a valid alignment.
[[gnu::always_inline]] inline layout verified(std::size_t bytes, std::size_t align) noexcept
{
    if (!is_power_of_two(align))
        __builtin_unreachable();
    return {bytes, align};
}

/// A table with an element for each combination of sync, reuse and check that is compiled in.
template <class Maker>
using makers = std::array<Maker, sync_modes * 4>;

constexpr std::size_t index_of(const choice& chosen) noexcept
{
    return static_cast<std::size_t>(chosen.threads) * 4 +
           static_cast<std::size_t>(chosen.order) * 2 + static_cast<std::size_t>(chosen.checks);
}
constexpr sync sync_at(std::size_t index) noexcept
{
    return static_cast<sync>(index / 4);
}
/// Returns the reuse order of a table element. The lock-free and thread-cached modes support only
/// one order.
constexpr reuse reuse_at(std::size_t index) noexcept
{
    return sync_at(index) >= sync::lock_free ? reuse::ordered : static_cast<reuse>(index / 2 % 2);
}
constexpr check check_at(std::size_t index) noexcept
{
    return static_cast<check>(index % 2);
}

} // namespace mallard::c
