// An adaptor that counts calls, blocks and bytes.
#pragma once

#include <mallard/adapt/adaptor.hpp>
#include <mallard/detail/base/tally.hpp>
#include <mallard/options.hpp>

namespace mallard {

template <class Counted>
class counting_scope;

/// Whether an adaptor is for several threads: `sync::none`, or `sync::lock_free`
/// for atomic numbers. What it wraps has a rule of its own.
constexpr bool has_atomic_numbers(sync threads) noexcept
{
    return threads == sync::lock_free;
}
template <sync Threads>
concept sync_of_numbers = Threads == sync::none || Threads == sync::lock_free;

/// Counts what goes through it, exactly: allocations, frees, failures, bytes, and the
/// most that was in use at once. An allocator's own `stats` cost nothing and know
/// neither totals nor peaks; this adds 15 instructions to an allocation and 2 to a free
/// (`tests/hot_path/hot_path.cpp`).
///
///     mallard::counted<mallard::multipool<>> memory;
///     ...
///     memory.counts().bytes_peak
///
/// Bytes are those asked for; of a chunk source, those it gave. Around a source it
/// says what an allocator takes, around an allocator what its callers take.
///
/// Allocates nothing; fails when what it wraps does. One thread at a time, or as
/// many as that allows with `counted<A, sync::lock_free>`, which is not moved.
template <source Inner, sync Threads = sync::none>
    requires sync_of_numbers<Threads>
class counted : public adaptor<counted<Inner, Threads>, Inner> {
    using base = adaptor<counted, Inner>;
    friend base;
    friend class counting_scope<counted>;
    static constexpr bool shared = has_atomic_numbers(Threads);

public:
    static constexpr bool any_thread = shared && shareable<Inner>;
    using base::base;

    call_counts counts() const noexcept { return tally_.read(); }

private:
    template <bool Throws>
    [[gnu::always_inline]] chunk take_one(layout l) noexcept(!Throws)
    {
        chunk const taken =
            base::template take_below_or<Throws>(l, [this]() noexcept { tally_.failed(); });
        if (Throws || taken.data != nullptr)
            tally_.took(taken.bytes);
        return taken;
    }
    [[gnu::always_inline]] void give_one(chunk c) noexcept
    {
        tally_.gave(c.bytes);
        base::give_below(c);
    }
    void forget_all() noexcept { tally_.gave_all(); }

    tally<shared> tally_;
};

/// Counts a stretch of a program by itself, from here to the brace, with a peak of
/// its own. Scopes nest, strictly; each counts what those inside it count. The idea
/// is rmm's `push_counters` and `pop_counters`.
///
///     mallard::counting_scope parsing(memory);
///     parse(text, memory);
///     parsing.counts().bytes_peak // above what was in use before
///
/// Costs nothing while it lasts. Of a shared `counted` it counts all threads.
template <class Counted>
class [[nodiscard]] counting_scope {
public:
    explicit counting_scope(Counted& of) noexcept
        : tally_(of.tally_), before_(tally_.begin_stretch())
    {
    }
    ~counting_scope() { tally_.end_stretch(before_); }
    counting_scope(const counting_scope&) = delete;
    counting_scope& operator=(const counting_scope&) = delete;

    call_counts counts() const noexcept { return tally_.read().since(before_); }

private:
    decltype(Counted::tally_)& tally_;
    call_counts before_;
};

} // namespace mallard
