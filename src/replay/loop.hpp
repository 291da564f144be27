// The loop in which a thread of a replay executes its ops (recorded calls).
#pragma once

#include "calls.hpp"

namespace mallard::replay {

/// Executes the ops of one thread. `Calls`, `Touch` and `Pace` are policies from calls.hpp, so that
/// the loop does not test options.
///
/// `do_ops` tests for malloc and free first, then for their forms in C++, because the processor
/// predicts these tests better than an indirect jump. Other ops of target 0 (malloc) are selected
/// by an indirect jump. (With ten mallocs and ten frees alternating, the tests about halved the CPU
/// time of an op.) With --no-op, an op of malloc or free takes 12 instructions on average according
/// to callgrind, or 17.5 with --touch=page. An op of new or delete takes up to 5 more. Rare cases
/// are in separate functions, which are not inlined.
template <class Calls, class Touch, class Pace>
class loop {
public:
    static void run(play& of, playing_thread& self) noexcept
    {
        loop all(of, self);
        all.do_ops();
        all.calls_.done();
    }

private:
    loop(play& of, playing_thread& self) noexcept
        : play_(of), self_(self), calls_(of, self), pace_(of.pace())
    {
    }

    static std::size_t bytes_of(op const& o) noexcept { return mallard_replay_size(o.what); }
    static std::size_t align_of(std::uint64_t what) noexcept
    {
        return std::size_t{1} << mallard_replay_align_log2(what);
    }
    void** slot_of(op const& o) const noexcept { return play_.slots() + o.slot; }

    void do_ops() noexcept
    {
        void** const slots = play_.slots();
        op const* next = play_.refill(self_);
        for (;;) {
            op const& o = *next++;
            void** const slot = slots + o.slot;
            pace_.before(o);
            calls_.note(o);
            std::uint64_t const handler = handler_of(o);
            if (handler == mallard_replay_op_malloc) {
                keep(slot, calls_.malloc(bytes_of(o)), o);
                continue;
            }
            if (handler == mallard_replay_op_free) {
                drop(*slot, [&](void* block) { calls_.free(block); });
                continue;
            }
            if (handler == mallard_replay_op_new) {
                keep(slot, calls_.make(bytes_of(o)), o);
                continue;
            }
            if (handler == mallard_replay_op_free_sized) {
                drop(*slot, [&](void* block) { calls_.free_sized(block, bytes_of(o)); });
                continue;
            }
            if (handler == mallard_replay_op_delete) {
                drop(*slot, [&](void* block) { calls_.destroy(block); });
                continue;
            }
            if (handler >= handlers_of_malloc) {
                do_local(o);
                continue;
            }
            switch (handler) {
            case mallard_replay_op_calloc:
                keep(slot, calls_.calloc(bytes_of(o)), o);
                continue;
            case mallard_replay_op_aligned:
                keep(slot, calls_.aligned(bytes_of(o), align_of(o.what)), o);
                continue;
            case mallard_replay_realloc_from:
                from_ = o.what;
                continue;
            case mallard_replay_op_realloc:
                reallocate(o);
                continue;
            case mallard_replay_op_new_aligned:
                keep(slot, calls_.make(bytes_of(o), align_of(o.what)), o);
                continue;
            case mallard_replay_op_delete_aligned:
                drop(*slot, [&](void* block) { calls_.destroy(block, align_of(o.what)); });
                continue;
            case mallard_replay_op_free_aligned:
                drop(*slot, [&](void* block) {
                    calls_.free_aligned(block, bytes_of(o), align_of(o.what));
                });
                continue;
            case mallard_replay_publish:
                play_.position_of(self_.number).publish(bytes_of(o));
                continue;
            case mallard_replay_wait:
                play_.position_of(o.slot).wait(bytes_of(o), play_.spins());
                continue;
            case window_end:
                next = play_.refill(self_);
                continue;
            case mallard_replay_end:
                return;
            default:
                do_other(o);
                continue;
            }
        }
    }

    /// Stores a new block in its slot, and touches the block.
    [[gnu::always_inline]] void keep(void** slot, void* block, op const& o) noexcept
    {
        *slot = block;
        if (block == nullptr) [[unlikely]]
            return failed(o);
        Touch::template part<Calls>(block, 0, bytes_of(o));
    }

    /// Frees the block of a slot.
    template <class Free>
    [[gnu::always_inline]] void drop(void* block, Free free) noexcept
    {
        if (block != nullptr) [[likely]]
            free(block);
        else
            free_nothing();
    }

    /// Counts a call that has returned null. Calls with size 0 are counted separately, because
    /// malloc(0) may return null.
    [[gnu::noinline, gnu::cold]] void failed(op const& o) noexcept
    {
        ++(bytes_of(o) != 0 ? self_.failures : self_.empty_blocks);
    }

    /// Counts a free op whose slot is empty.
    [[gnu::noinline, gnu::cold]] void free_nothing() noexcept { ++self_.empty_frees; }

    /// Calls realloc. If no `realloc_from` came before this op, there is no old block, because the
    /// slot is empty, or contains the address of a block whose free was dropped. If realloc fails,
    /// the old block stays in the slot.
    [[gnu::noinline]] void reallocate(op const& o) noexcept
    {
        std::uint64_t const from = std::exchange(from_, 0);
        void** const slot = slot_of(o);
        void* const old = from == 0 ? nullptr : *slot;
        void* const block = calls_.realloc(old, bytes_of(o));
        if (block == nullptr) [[unlikely]] {
            if (old == nullptr)
                *slot = nullptr;
            return failed(o);
        }
        *slot = block;
        Touch::template part<Calls>(block, old == nullptr ? 0 : mallard_replay_size(from),
                                    bytes_of(o));
    }

    /// Executes a rare op of target 0 (malloc).
    [[gnu::noinline]] void do_other(op const& o) noexcept
    {
        switch (handler_of(o)) {
        case mallard_replay_op_free_null:
            return calls_.free(nullptr);
        case mallard_replay_start:
            return play_.start(self_, o.slot);
        case mallard_replay_pause:
            return pace_.pause(o);
        case mallard_replay_op_malloc_failed:
            return fail(calls_.malloc(bytes_of(o)));
        case mallard_replay_op_calloc_failed:
            return fail(calls_.calloc(bytes_of(o)));
        case mallard_replay_op_aligned_failed:
            return fail(calls_.aligned(bytes_of(o), align_of(o.what)));
        case mallard_replay_op_realloc_failed:
            return fail_to_reallocate(o);
        }
    }

    /// Handles the result of a call that failed in the recorded program. If the call has succeeded
    /// in the replay, counts the call and frees the block.
    void fail(void* block) noexcept
    {
        if (!Calls::can_fail || block == nullptr)
            return;
        ++self_.successes;
        calls_.free(block);
    }

    void fail_to_reallocate(op const& o) noexcept
    {
        void** const slot = slot_of(o);
        if (std::exchange(from_, 0) == 0 || *slot == nullptr)
            return fail(calls_.realloc(nullptr, bytes_of(o)));
        void* const block = calls_.realloc(*slot, bytes_of(o));
        if (!Calls::can_fail || block == nullptr)
            return;
        ++self_.successes;
        *slot = block;
    }

    /// Executes an op of a local target.
    [[gnu::noinline]] void do_local(op const& o) noexcept
    {
        local_target& at = calls_.target(o);
        if (at.is_shared()) [[unlikely]]
            do_shared(at, o);
        else
            do_at(at, o);
    }

    [[gnu::noinline]] void do_shared(local_target& at, op const& o) noexcept
    {
        std::lock_guard const held(at.lock());
        do_at(at, o);
    }

    [[gnu::always_inline]] void do_at(local_target& at, op const& o) noexcept
    {
        layout const l{bytes_of(o), align_of(o.what)};
        switch (mallard_replay_op_of(o.what)) {
        case mallard_replay_op_malloc:
        case mallard_replay_op_calloc:
        case mallard_replay_op_aligned:
        case mallard_replay_op_new:
        case mallard_replay_op_new_aligned:
            return keep(slot_of(o), calls_.allocate(at, l), o);
        case mallard_replay_op_free:
        case mallard_replay_op_delete:
        case mallard_replay_op_delete_aligned:
        case mallard_replay_op_free_sized:
        case mallard_replay_op_free_aligned:
            if (void* const block = *slot_of(o))
                calls_.deallocate(at, block, l);
            return;
        case mallard_replay_realloc_from:
            return void(from_ = o.what);
        case mallard_replay_op_realloc:
            return reallocate_local(at, o, l);
        case mallard_replay_op_malloc_failed:
        case mallard_replay_op_calloc_failed:
        case mallard_replay_op_aligned_failed:
        case mallard_replay_op_realloc_failed:
            return fail_local(at, l);
        case mallard_replay_open:
            return calls_.open(at);
        case mallard_replay_close:
            return calls_.close(at);
        }
    }

    /// Reallocates a block of a local allocator as a user would, with an allocation, a copy and a
    /// deallocation.
    [[gnu::noinline]] void reallocate_local(local_target& at, op const& o, layout l) noexcept
    {
        std::uint64_t const from = std::exchange(from_, 0);
        void** const slot = slot_of(o);
        void* const old = from == 0 ? nullptr : *slot;
        void* const block = calls_.allocate(at, l);
        if (block == nullptr) [[unlikely]] {
            *slot = old;
            return failed(o);
        }
        std::size_t kept = 0;
        if (old != nullptr) {
            layout const before{mallard_replay_size(from), align_of(from)};
            kept = std::min(before.bytes, l.bytes);
            calls_.copy(block, old, kept);
            calls_.deallocate(at, old, before);
        }
        *slot = block;
        Touch::template part<Calls>(block, kept, l.bytes);
    }

    [[gnu::noinline, gnu::cold]] void fail_local(local_target& at, layout l) noexcept
    {
        from_ = 0;
        void* const block = calls_.allocate(at, l);
        if (!Calls::can_fail || block == nullptr)
            return;
        ++self_.successes;
        calls_.deallocate(at, block, l);
    }

    play& play_;
    playing_thread& self_;
    [[no_unique_address]] Calls calls_;
    [[no_unique_address]] Pace pace_;
    std::uint64_t from_ = 0; ///< `what` of the preceding op realloc_from, or 0
};

} // namespace mallard::replay
