// operator new and delete, in all their forms.
//
// An operator of libstdc++ or libc++ calls malloc or free, whose hooks record the event. So the
// operators of this file only store which form was called (thread_state::from) and jump to the next
// operator. Because they jump, no frame of the recorder is on the stack when std::bad_alloc is
// thrown. If the next operator belongs to another allocator and does not call malloc, the event is
// recorded and timed here.
#include "../preload/next_operator.hpp"
#include "sampled.hpp"
#include "thread.hpp"

#include <type_traits>
#include <utility>

namespace mallard::record {

using namespace preload;

namespace {

/// A scope in which calls of this thread are not recorded. The first call of an operator uses such
/// a scope to look up the next operator, because the dynamic linker's allocations for the look-up
/// do not belong to the program's call. The event of the program's call is recorded after the
/// look-up, so the destructor restores the stored form.
class quiet {
public:
    quiet() noexcept { this_thread.now.store(in_call, std::memory_order_relaxed); }
    ~quiet()
    {
        this_thread.from = from_;
        this_thread.now.store(before_, std::memory_order_relaxed);
    }
    quiet(quiet const&) = delete;
    quiet& operator=(quiet const&) = delete;

private:
    activity const before_ = this_thread.now.load(std::memory_order_relaxed);
    std::uint64_t const from_ = this_thread.from;
};

/// Returns whether recording of the thread has started in this process. If not, the clock of the
/// ring may still be unknown.
[[gnu::always_inline]] inline bool has_started() noexcept
{
    return this_thread.process == this_process.number.load(std::memory_order_relaxed);
}

/// Stores the flags of the operator (sized, aligned, array ...) for the hook of malloc or free that
/// runs next in this thread. If one operator calls another, the flags of both are stored.
[[gnu::always_inline]] inline void note(unsigned flags, std::size_t bytes = 0,
                                        unsigned align_log2 = 0) noexcept
{
    if (this_thread.now.load(std::memory_order_relaxed) == in_program)
        this_thread.from |=
            mallard_trace_pack(bytes, align_log2, 0, mallard_trace_from_new | flags);
}

/// The flags of an operator that has these arguments after the first.
template <class... More>
constexpr unsigned flags_of =
    unsigned{mallard_trace_sized} * (std::is_same_v<More, std::size_t> || ...) |
    unsigned{mallard_trace_aligned} * (std::is_same_v<More, std::align_val_t> || ...) |
    unsigned{mallard_trace_nothrow} * (std::is_same_v<More, const std::nothrow_t&> || ...);

/// One form of an operator. The operator that the program calls jumps to `next`, which is `look_up`
/// at first.
template <form Form, class Result, class First, class... More>
struct the_operator {
    using function = Result (*)(First, More...);

    /// Serves the first call. Jumps to the next operator, too, so that no recorded stack has a
    /// frame of the recorder.
    static Result look_up(First first, More... more) { return find()(first, more...); }

    [[gnu::noinline]] static function find() noexcept
    {
        quiet const until_found;
        found = reinterpret_cast<function>(find_operator<Form, More...>());
        next = calls_malloc(reinterpret_cast<void*>(found)) ? found : record;
        return next;
    }

    /// Calls an operator that does not always call malloc or free. Records the event exactly once.
    static Result record(First first, More... more)
    {
        if constexpr (Form == new_one || Form == new_array)
            return record_new(first, more...);
        else
            record_delete(first, more...);
    }

    /// Calls an operator new and records the event. The operator may throw, and nothing would then
    /// restore the state of the thread. So during the call, the state stays `in_program`, and the
    /// call is counted only after the operator has returned.
    static Result record_new(std::size_t bytes, More... more)
    {
        if (found == nullptr)
            return allocate_without_runtime(bytes, more...);
        std::uint64_t const begin = has_started() ? begin_of_next_call(this_thread) : 0;
        void* const block = found(bytes, more...);
        // If the operator called malloc, the hook has counted and recorded the call, and cleared
        // `from`.
        if (std::uint64_t const from = this_thread.from; from != 0) {
            if (thread_state* const t = enter()) {
                std::uint64_t const end = ticks_after();
                t->calls += 1;
                t->from = 0;
                if (is_wanted(*t, block, bytes))
                    append(
                        *t, end, block,
                        mallard_trace_pack(bytes, align_log2_of(more...), mallard_trace_malloc, 0) |
                            from,
                        duration(begin, end), this_frame());
                leave(*t);
            }
        }
        return block;
    }

    static void record_delete(void* block, More... more) noexcept
    {
        if (found == nullptr)
            return ::free(block);
        bool const was_known = is_known(block);
        thread_state* const t = block == nullptr ? nullptr : enter();
        if (t == nullptr) {
            this_thread.from = 0;
            return found(block, more...);
        }
        std::uint64_t const from = std::exchange(t->from, 0);
        if (was_known)
            append(*t, ticks(), block, mallard_trace_pack(0, 0, mallard_trace_free, 0) | from, 0,
                   the.has_free_stacks ? this_frame() : nullptr);
        t->now.store(in_call, std::memory_order_relaxed); // so nested frees do not count as lost
        if (is_timed_free(*t)) [[unlikely]]
            time_free([=] { found(block, more...); });
        else
            found(block, more...);
        leave(*t);
    }

    static inline constinit function next = look_up;
    static inline constinit function found = nullptr;
};

} // namespace

} // namespace mallard::record

namespace mallard::preload {

/// The implementation of the operators in preload/operators.hpp.
struct operators {
    template <form Form, class... More>
    [[gnu::always_inline]] static void* make(std::size_t bytes, More... more)
    {
        record::note(unsigned{mallard_trace_array} * (Form == new_array) |
                     record::flags_of<More...>);
        return record::the_operator<Form, void*, std::size_t, More...>::next(bytes, more...);
    }

    template <form Form, class... More>
    [[gnu::always_inline]] static void destroy(void* block, More... more) noexcept
    {
        record::note(unsigned{mallard_trace_array} * (Form == delete_array) |
                         record::flags_of<More...>,
                     bytes_of(more...), align_log2_of(more...));
        record::the_operator<Form, void, void*, More...>::next(block, more...);
    }
};

} // namespace mallard::preload

#include "../preload/operators.hpp"
