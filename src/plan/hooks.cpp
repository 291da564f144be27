// malloc and related functions, as the program calls them. The functions look up their caller in
// the plan, and then allocate by a rule or call the next allocator.
#include "request.hpp"

#include <mallard/trace/trace_format.h>

#include <bit>
#include <cstdlib>

namespace mallard::plan {

namespace {

/// Serves a request that neither `allocate_quickly` nor `serve` can serve.
template <class Real>
[[gnu::noinline]] void* serve_slowly(std::size_t bytes, answer known, std::uintptr_t caller,
                                     unsigned op, unsigned align_log2, Real real) noexcept
{
    void* const block = allocate_slowly(
        {known, /*is_operator=*/false, static_cast<std::uint8_t>(align_log2), caller, bytes});
    if (block == nullptr)
        return preload::find_next() ? real()
                                    : preload::bootstrap(bytes, std::size_t{1} << align_log2);
    return op == mallard_trace_calloc ? std::memset(block, 0, bytes) : block;
}

/// Serves a request that `allocate_quickly` does not serve, unless the table of answers assigns its
/// caller to malloc.
template <class Real>
[[gnu::noinline]] void* serve(std::size_t bytes, answer of_caller, std::uintptr_t caller,
                              unsigned op, unsigned align_log2, Real real) noexcept
{
    auto const [known, quick] = serve_in_region(of_caller, bytes, align_log2, os::caller());
    if (quick != nullptr) [[likely]]
        return op == mallard_trace_calloc ? std::memset(quick, 0, bytes) : quick;
    if (is_of_malloc(known))
        return real(); // in a control run, malloc serves all requests
    instance* const in = instance_of(known, bytes, align_log2);
    if (in == nullptr) [[unlikely]]
        return count_unknown(known) ? real()
                                    : serve_slowly(bytes, known, caller, op, align_log2, real);
    if (in->allocator == 0) {
        count(*in, bytes);
        return real(); // in a control run, malloc serves all requests
    }
    void* const block = take_counted(*in, bytes);
    if (block == nullptr) [[unlikely]]
        return serve_slowly(bytes, known, caller, op, align_log2, real);
    return op == mallard_trace_calloc ? std::memset(block, 0, bytes) : block;
}

/// Serves realloc for a block that was allocated by `bootstrap`, before the next allocator was
/// known. The old block stays in use, because blocks of `bootstrap` are never freed.
[[gnu::cold, gnu::noinline]] void* move_from_bootstrap(void* block, std::size_t bytes) noexcept
{
    void* const moved = ::malloc(bytes);
    std::size_t const left = preload::bootstrap_left(block);
    if (moved != nullptr)
        std::memcpy(moved, block, bytes < left ? bytes : left);
    return moved;
}

} // namespace

} // namespace mallard::plan

namespace mallard::preload {

/// The implementation of the functions in preload/family.hpp.
struct hooks {
    template <class Real>
    [[gnu::always_inline]] static void* allocate(unsigned op, std::size_t bytes,
                                                 unsigned align_log2, Real real) noexcept
    {
        std::uintptr_t const caller = plan::return_address();
        plan::answer const known = plan::answer_of(caller);
        if (plan::is_of_malloc(known)) [[likely]]
            return real();
        if (known >= plan::first_rule && align_log2 <= 4)
            if (void* const block = plan::allocate_quickly(known, bytes)) [[likely]]
                return op == mallard_trace_calloc ? std::memset(block, 0, bytes) : block;
        return plan::serve(bytes, known, caller, op, align_log2, real);
    }

    template <class Real>
    [[gnu::always_inline]] static void deallocate(unsigned, void* block, std::size_t, unsigned,
                                                  Real real) noexcept
    {
        if (plan::is_of_plan(block)) [[unlikely]]
            return plan::free_of_rule(block);
        if (is_bootstrap(block)) [[unlikely]]
            return;
        real();
    }

    template <class Real>
    [[gnu::always_inline]] static void* reallocate(void* block, std::size_t bytes,
                                                   Real real) noexcept
    {
        if (block == nullptr)
            return allocate(mallard_trace_malloc, bytes, 0, real);
        if (plan::is_of_plan(block))
            return plan::reallocate_of_rule(block, bytes);
        if (is_bootstrap(block)) [[unlikely]]
            return plan::move_from_bootstrap(block, bytes);
        return real();
    }

    /// Returns the logarithm of an alignment. For an alignment that libc may reject, the result is
    /// too large for every rule, so that libc serves the call.
    static unsigned log2_of(std::size_t align) noexcept
    {
        bool const is_valid = align >= sizeof(void*) && std::has_single_bit(align);
        return is_valid ? static_cast<unsigned>(std::countr_zero(align)) : 63;
    }

    static void after_dlclose() noexcept { plan::forget_modules(); }
};

} // namespace mallard::preload

#include "../preload/family.hpp"

extern "C" [[gnu::visibility("default")]] std::size_t malloc_usable_size(void* block)
{
    using namespace mallard;
    if (plan::is_of_plan(block))
        return plan::usable_bytes(plan::chunk_of(block), block);
    if (preload::is_bootstrap(block))
        return 0;
    return preload::find_next() ? preload::next.malloc_usable_size(block) : 0;
}
