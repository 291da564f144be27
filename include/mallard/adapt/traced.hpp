// An adaptor that reports each call as a trace event.
#pragma once

#include <mallard/adapt/adaptor.hpp>
#include <mallard/trace/trace_file.hpp>

namespace mallard {

/// A callable that receives each trace event. The callable must not throw, and must not call the
/// traced allocator.
template <class S>
concept trace_sink = std::invocable<S&, const mallard_trace_record&>;

/// Reports each call to an allocator or source to a sink, such as a channel of a `trace_file`.
///
///     mallard::trace_file file("app.trace");
///     mallard::traced<mallard::multipool<>> orders(file.channel("orders"));
///
///     auto print = [](const mallard_trace_record& r) { std::printf("%zx\n", r.addr); };
///     mallard::traced<mallard::arena<>, decltype(print)> scratch(print);
///
/// An allocation is reported after the call, with its duration, even if it failed. A free is
/// reported before the call, so in a trace, the free of an address always comes before the next
/// allocation of that address. A `reset` or `release` is one event. Times are in nanoseconds of
/// std::chrono::steady_clock. An allocation reads the clock twice, and a free reads it once. Each
/// reading costs about 20 ns.
///
/// The thread rules of the wrapped object and of the sink apply. A channel of a `trace_file` is a
/// sink that any thread may call.
template <source Inner = default_heap, trace_sink Sink = trace_channel>
class traced : public adaptor<traced<Inner, Sink>, Inner> {
    using base = adaptor<traced, Inner>;
    friend adaptor_access;

public:
    /// Whether any thread may call this object (see `shareable`).
    static constexpr bool any_thread = shareable<Inner> && std::same_as<Sink, trace_channel>;

    /// Makes an allocator that reports to `sink`.
    explicit traced(Sink sink) noexcept
        requires std::default_initializable<Inner>
        : sink_(std::move(sink))
    {
    }
    /// Makes an allocator that reports to `sink`. The other arguments construct the wrapped object.
    template <class... Args>
        requires std::constructible_from<Inner, Args...>
    traced(Sink sink, std::in_place_t, Args&&... args)
        : base(std::in_place, std::forward<Args>(args)...), sink_(std::move(sink))
    {
    }

    /// Returns the sink.
    Sink& sink() noexcept { return sink_; }

private:
    /// Reports an allocation from its destructor, so a call that throws is reported too.
    struct allocation {
        traced& by;
        layout requested;
        chunk given{};
        std::uint64_t begin = trace_now();

        ~allocation()
        {
            std::uint64_t const end = trace_now();
            std::uint64_t const dur = std::min<std::uint64_t>(end - begin, UINT32_MAX);
            by.tell(end, given.data, given.data != nullptr ? given.bytes : requested.bytes,
                    requested.align, mallard_trace_allocate, static_cast<std::uint32_t>(dur));
        }
    };

    template <bool Throws>
    chunk take_one(layout l) noexcept(!Throws)
    {
        allocation event{*this, l};
        return event.given = this->template take_below<Throws>(l);
    }

    void give_one(chunk c) noexcept
    {
        tell(trace_now(), c.data, c.bytes, c.align, mallard_trace_deallocate, 0);
        this->give_below(c);
    }

    void forget_all() noexcept { tell(trace_now(), nullptr, 0, 1, mallard_trace_reset, 0); }

    void tell(std::uint64_t t, const void* block, std::size_t bytes, std::size_t align,
              mallard_trace_op op, std::uint32_t dur) noexcept
    {
        unsigned const flags = dur == UINT32_MAX ? mallard_trace_dur_cut : 0;
        auto const align_log2 = static_cast<unsigned>(std::countr_zero(align));
        sink_(mallard_trace_record{.t = t,
                                   .addr = reinterpret_cast<std::uintptr_t>(block),
                                   .what = mallard_trace_pack(bytes, align_log2, op, flags),
                                   .stack = 0,
                                   .dur = dur});
    }

    [[no_unique_address]] Sink sink_;
};

} // namespace mallard
