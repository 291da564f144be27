// operator new and delete, in all their forms.
//
// An operator of libstdc++ or libc++ calls malloc or free. So the operators in this file call the
// next malloc or free directly. Only if malloc has no memory, they call the operator of the C++
// runtime, which then calls the new handler and throws. If another library defines the next
// operators, these are called without such a shortcut.
#include "operators.hpp"

#include "../preload/next_operator.hpp"
#include "request.hpp"

#include <atomic>

namespace mallard::plan {

using namespace preload;

namespace {

/// The next operator of a form. The operator that the program calls jumps to `next`, which is
/// `look_up` at first.
template <form Form, class Result, class First, class... More>
struct next_operator {
    using function = Result (*)(First, More...);

    static Result look_up(First first, More... more) { return find()(first, more...); }

    /// Looks up the operator. Without a C++ runtime, the next call looks it up again, because a
    /// plugin may load a runtime in the meantime.
    [[gnu::noinline]] static function find() noexcept
    {
        static_cast<void>(find_next());
        auto const at = reinterpret_cast<function>(find_operator<Form, More...>());
        if (at == nullptr)
            return without_runtime;
        constexpr bool is_plain = !(std::is_same_v<More, std::align_val_t> || ...);
        bool const is_of_runtime = is_plain && calls_malloc(reinterpret_cast<void*>(at));
        found.store(at, std::memory_order_relaxed);
        next.store(is_of_runtime ? call_malloc_or_free : at, std::memory_order_release);
        return is_of_runtime ? call_malloc_or_free : at;
    }

    /// The acquire orders this load before the load of `found`.
    [[gnu::always_inline]] static Result call_next(First first, More... more)
    {
        return next.load(std::memory_order_acquire)(first, more...);
    }

    static Result call_malloc_or_free(First first, More... more)
    {
        if constexpr (Form == new_one || Form == new_array) {
            void* const block = preload::next.malloc(first != 0 ? first : 1);
            return block != nullptr ? block : found.load(std::memory_order_relaxed)(first, more...);
        } else {
            preload::next.free(first);
        }
    }

    static Result without_runtime(First first, More... more) noexcept
    {
        if constexpr (Form == new_one || Form == new_array)
            return allocate_without_runtime(first, more...);
        else
            ::free(first);
    }

    static inline constinit std::atomic<function> next = look_up;
    static inline constinit std::atomic<function> found = nullptr;
};

template <form Form, class... More>
void find_new() noexcept
{
    static_cast<void>(next_operator<Form, void*, std::size_t, More...>::find());
}
template <form Form, class... More>
void find_delete() noexcept
{
    static_cast<void>(next_operator<Form, void, void*, More...>::find());
}

/// Serves a request that neither `allocate_quickly` nor `serve` can serve.
template <form Form, class... More>
[[gnu::noinline]] void* serve_slowly(std::size_t bytes, answer known, std::uintptr_t caller,
                                     More... more)
{
    auto const align_log2 = static_cast<std::uint8_t>(align_log2_of(more...));
    request const r{known, /*is_operator=*/true, align_log2, caller, bytes};
    if (void* const block = allocate_slowly(r))
        return block;
    return next_operator<Form, void*, std::size_t, More...>::call_next(bytes, more...);
}

/// Serves a request that `allocate_quickly` does not serve, unless the table of answers assigns its
/// caller to malloc.
template <form Form, class... More>
[[gnu::noinline]] void* serve(std::size_t bytes, answer of_caller, std::uintptr_t caller,
                              More... more)
{
    unsigned const align_log2 = align_log2_of(more...);
    auto const [known, quick] = serve_in_region(of_caller, bytes, align_log2, os::caller());
    if (quick != nullptr) [[likely]]
        return quick;
    if (is_of_malloc(known)) // in a control run, malloc serves all requests
        return next_operator<Form, void*, std::size_t, More...>::call_next(bytes, more...);
    instance* const in = instance_of(known, bytes, align_log2);
    if (in == nullptr) [[unlikely]]
        return count_unknown(known)
                   ? next_operator<Form, void*, std::size_t, More...>::call_next(bytes, more...)
                   : serve_slowly<Form, More...>(bytes, known, caller, more...);
    if (in->allocator == 0) {
        count(*in, bytes);
        return next_operator<Form, void*, std::size_t, More...>::call_next(bytes, more...);
    }
    void* const block = take_counted(*in, bytes);
    if (block == nullptr) [[unlikely]]
        return serve_slowly<Form, More...>(bytes, known, caller, more...);
    return block;
}

template <form New, form Delete>
void find_forms() noexcept
{
    using nothrow = const std::nothrow_t&;
    find_new<New>();
    find_new<New, nothrow>();
    find_new<New, std::align_val_t>();
    find_new<New, std::align_val_t, nothrow>();
    find_delete<Delete>();
    find_delete<Delete, std::size_t>();
    find_delete<Delete, std::align_val_t>();
    find_delete<Delete, std::size_t, std::align_val_t>();
    find_delete<Delete, nothrow>();
    find_delete<Delete, std::align_val_t, nothrow>();
}

} // namespace

void find_operators() noexcept
{
    static constinit std::atomic<bool> are_found{false};
    if (are_found.load(std::memory_order_relaxed))
        return;
    if (find_by_name("_Znwm") != nullptr) {
        are_found.store(true, std::memory_order_relaxed);
        find_forms<new_one, delete_one>();
        find_forms<new_array, delete_array>();
    }
    ::dlerror(); // the program must not see the error if the operators are missing
}

} // namespace mallard::plan

namespace mallard::preload {

/// The implementation of the operators in preload/operators.hpp.
struct operators {
    template <form Form, class... More>
    [[gnu::always_inline]] static void* make(std::size_t bytes, More... more)
    {
        std::uintptr_t const caller = plan::return_address();
        plan::answer const known = plan::answer_of(caller);
        if (plan::is_of_malloc(known)) [[likely]]
            return plan::next_operator<Form, void*, std::size_t, More...>::call_next(bytes,
                                                                                     more...);
        if (known >= plan::first_rule && align_log2_of(more...) <= 4)
            if (void* const block = plan::allocate_quickly(known, bytes)) [[likely]]
                return block;
        return plan::serve<Form, More...>(bytes, known, caller, more...);
    }

    template <form Form, class... More>
    [[gnu::always_inline]] static void destroy(void* block, More... more) noexcept
    {
        if (plan::is_of_plan(block)) [[unlikely]]
            return plan::free_of_rule(block);
        if (is_bootstrap(block)) [[unlikely]]
            return;
        plan::next_operator<Form, void, void*, More...>::call_next(block, more...);
    }
};

} // namespace mallard::preload

#include "../preload/operators.hpp"
