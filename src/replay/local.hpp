// The local allocators of a plan, which are all targets of the op stream except malloc.
#pragma once

#include "stream.hpp"

#include <mallard/adapt/counted.hpp>
#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>

#include <memory>

namespace mallard::replay {

/// A heap whose chunks are aligned to a cache line. If blocks are aligned to more than 16 bytes,
/// the number of blocks that fit into a chunk depends on the address of the chunk. With this heap,
/// local allocators request the same chunks in every replay and with every malloc, as long as no
/// block is aligned to more than a cache line.
class line_heap {
public:
    static constexpr bool any_thread = true;

    chunk try_take(layout l) noexcept
    {
        return heap_.try_take({l.bytes, l.align < cache_line_bytes ? cache_line_bytes : l.align});
    }
    void give(chunk c) noexcept { heap_.give(c); }

private:
    default_heap heap_;
};

/// Three heaps. One serves all targets, one the targets of a rule, and one a single target. Each
/// heap counts the bytes of its chunks in use. Chunks are requested rarely, so the counts cost
/// almost nothing.
using heap_of_all = counted<line_heap, sync::lock_free>;
using heap_of_rule = counted<ref<heap_of_all>, sync::lock_free>;
using heap_of_target = counted<ref<heap_of_rule>>;

/// One target, which is a local allocator of the plan. `open` constructs an instance, with the
/// allocator type that a user would choose, and `close` destroys the instance. The heap continues
/// to exist when an instance is closed, so that the peak of the heap covers all instances.
class local_target {
public:
    local_target(mallard_replay_target const& description, heap_of_rule& from) noexcept
        : description_(description), heap_(std::in_place, from)
    {
    }
    ~local_target() { close(); }
    local_target(local_target const&) = delete;
    local_target& operator=(local_target const&) = delete;

    void open() noexcept;
    void close() noexcept;

    void* allocate(layout l) noexcept
    {
        return visit([l](auto& a) noexcept { return a.try_allocate(l); });
    }
    void deallocate(void* block, layout l) noexcept
    {
        visit([=](auto& a) noexcept {
            a.deallocate(block, l);
            return nullptr;
        });
    }

    /// Returns the memory that the target has requested from the heap since the start of the
    /// replay.
    call_counts counts() const noexcept { return heap_.counts(); }
    /// Returns the description of the target from the file.
    mallard_replay_target const& description() const noexcept { return description_; }
    /// Returns the lock of a shared target.
    std::mutex& lock() noexcept { return lock_; }
    bool is_shared() const noexcept { return description_.is_shared != 0; }

private:
    using heap = ref<heap_of_target>;
    using arena_type = arena<heap, arena_options{.grow = growth::at_run_time()}>;
    using multipool_type = multipool<heap>;
    using sized_multipool_type = multipool<heap, multipool_options{.grow = growth::at_run_time()}>;
    using layered_type = multipool<arena_type>;

    enum class kind { closed, is_arena, is_multipool, is_sized_multipool, is_layered };

    /// Returns the growth rule of an arena, which is the default rule unless the plan sets the size
    /// of the first chunk.
    growth arena_growth() const noexcept
    {
        growth rule = arena_options{}.grow;
        if (description_.first_chunk != 0)
            rule.first = description_.first_chunk;
        return rule;
    }

    /// Calls `f` with the open allocator. Always inlined, because a call would pass the captures of
    /// `f` in memory, which would stall each deallocation for about 12 cycles.
    template <class F>
    [[gnu::always_inline]] void* visit(F f) noexcept
    {
        switch (open_) {
        case kind::is_arena:
            return f(arena_);
        case kind::is_multipool:
            return f(multipool_);
        case kind::is_sized_multipool:
            return f(sized_multipool_);
        case kind::is_layered:
            return f(layered_);
        case kind::closed:
            break;
        }
        return nullptr;
    }

    mallard_replay_target description_;
    kind open_ = kind::closed;
    heap_of_target heap_;
    std::mutex lock_;
    union { // `open_` determines which member exists
        char none_ = 0;
        arena_type arena_;
        multipool_type multipool_;
        sized_multipool_type sized_multipool_;
        layered_type layered_;
    };
};

/// All targets of a stream, and the heaps from which they and their rules request memory.
class local_targets {
public:
    explicit local_targets(stream const& of) noexcept;
    ~local_targets();

    /// Returns the target with this number. `target` must not be 0.
    local_target& operator[](std::uint64_t target) const noexcept { return targets_[target]; }
    /// Returns the number of targets, including target 0 (malloc).
    std::size_t count() const noexcept { return targets_.count(); }
    /// Returns the number of the last rule.
    std::size_t last_rule() const noexcept { return rules_.count() - 1; }
    call_counts all() const noexcept { return all_.counts(); } ///< sums over all targets
    /// Returns the counts for all targets of a rule.
    call_counts of_rule(std::size_t rule) const noexcept { return rules_[rule].counts(); }
    /// Returns whether there are targets other than target 0 (malloc).
    bool exist() const noexcept { return targets_.count() > 1; }

private:
    heap_of_all all_;
    table<heap_of_rule> rules_;
    table<local_target> targets_;
};

} // namespace mallard::replay
