#include "account.hpp"

#include "walk.hpp"

namespace mallard::replay {
namespace {

layout layout_of(op const& o) noexcept
{
    return {mallard_replay_size(o.what), std::size_t{1} << mallard_replay_align_log2(o.what)};
}

} // namespace

account::account(stream const& of, windows& memory) noexcept
    : stream_(of), memory_(memory), targets_(of), slots_(of.header().slots, "the slots"),
      from_(of.threads().count(), "the threads of the account"),
      requested_(of.targets().count(), "the bytes of the targets")
{
}

void account::run() noexcept
{
    walk all(stream_, memory_);
    all.run(
        [this](std::uint32_t thread, std::uint64_t, op const& o) noexcept { visit(thread, o); });
}

/// Adds the size of a block to the counts of its target and of all targets.
void account::add(op const& o) noexcept
{
    unsigned const target = mallard_replay_target_of(o.what);
    requested_[0].add(mallard_replay_size(o.what));
    if (target != 0)
        requested_[target].add(mallard_replay_size(o.what));
}

/// Subtracts the size of a block from the counts of its target and of all targets.
void account::take(op const& o) noexcept
{
    unsigned const target = mallard_replay_target_of(o.what);
    requested_[0].take(mallard_replay_size(o.what));
    if (target != 0)
        requested_[target].take(mallard_replay_size(o.what));
}

void account::visit(std::uint32_t thread, op const& o) noexcept
{
    if (mallard_replay_target_of(o.what) != 0)
        return visit_local(thread, o);
    switch (mallard_replay_op_of(o.what)) {
    case mallard_replay_op_malloc:
    case mallard_replay_op_calloc:
    case mallard_replay_op_aligned:
    case mallard_replay_op_new:
    case mallard_replay_op_new_aligned:
        return add(o);
    case mallard_replay_op_free:
    case mallard_replay_op_delete:
    case mallard_replay_op_delete_aligned:
    case mallard_replay_op_free_sized:
    case mallard_replay_op_free_aligned:
        return take(o);
    case mallard_replay_realloc_from:
        return void(from_[thread] = o);
    case mallard_replay_op_realloc_failed:
        return void(from_[thread] = {});
    case mallard_replay_op_realloc:
        if (from_[thread].what != 0)
            take(from_[thread]);
        from_[thread] = {};
        return add(o);
    }
}

void account::visit_local(std::uint32_t thread, op const& o) noexcept
{
    unsigned const number = mallard_replay_target_of(o.what);
    local_target& target = targets_[number];
    switch (mallard_replay_op_of(o.what)) {
    case mallard_replay_op_malloc:
    case mallard_replay_op_calloc:
    case mallard_replay_op_aligned:
    case mallard_replay_op_new:
    case mallard_replay_op_new_aligned:
        return allocate(o);
    case mallard_replay_op_free:
    case mallard_replay_op_delete:
    case mallard_replay_op_delete_aligned:
    case mallard_replay_op_free_sized:
    case mallard_replay_op_free_aligned:
        take(o);
        if (slots_[o.slot] != nullptr)
            target.deallocate(slots_[o.slot], layout_of(o));
        return;
    case mallard_replay_realloc_from:
        return void(from_[thread] = o);
    case mallard_replay_op_realloc:
        return reallocate(std::exchange(from_[thread], op{}), o);
    case mallard_replay_op_malloc_failed:
    case mallard_replay_op_calloc_failed:
    case mallard_replay_op_aligned_failed:
    case mallard_replay_op_realloc_failed:
        from_[thread] = {};
        if (void* const block = target.allocate(layout_of(o)))
            target.deallocate(block, layout_of(o));
        return;
    case mallard_replay_open:
        return target.open();
    case mallard_replay_close:
        requested_[0].take(requested_[number].now);
        requested_[number].now = 0;
        return target.close();
    }
}

void account::allocate(op const& o) noexcept
{
    add(o);
    slots_[o.slot] = targets_[mallard_replay_target_of(o.what)].allocate(layout_of(o));
    failures_ += slots_[o.slot] == nullptr && mallard_replay_size(o.what) != 0;
}

/// Reallocates a local block by an allocation and a deallocation. In between, the allocator holds
/// both blocks, but only the new block counts as requested. The contents are not copied, because
/// nothing reads them.
void account::reallocate(op const& from, op const& o) noexcept
{
    if (from.what == 0)
        return allocate(o);
    void* const old = slots_[o.slot];
    take(from);
    allocate(o);
    if (slots_[o.slot] == nullptr) {
        slots_[o.slot] = old;
        return;
    }
    if (old != nullptr)
        targets_[mallard_replay_target_of(o.what)].deallocate(old, layout_of(from));
}

} // namespace mallard::replay
