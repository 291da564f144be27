// The multipools of the C API; they are built like its pools.
#include "handle.hpp"

#include <mallard/multipool.hpp>
#include <mallard/sync.hpp>

namespace mallard::c {
namespace {

/// The functions of a multipool that are called through a second pointer.
struct multipool_functions {
    void (*destroy)(mallard_multipool&) noexcept;
    void (*reset)(mallard_multipool&) noexcept;
    void (*release)(mallard_multipool&) noexcept;
    void (*trim)(mallard_multipool&, std::size_t keep) noexcept;
    bool (*owns)(const mallard_multipool&, const void*) noexcept;
    validity (*classify)(const mallard_multipool&, const void*) noexcept;
    statistics (*stats)(const mallard_multipool&) noexcept;
};

/// The growth of each pool. With a buffer, all pools share the buffer.
growth growth_for(const mallard_multipool_options& o) noexcept
{
    growth rule = multipool_options().grow;
    if (o.buffer != nullptr)
        rule.first /= 2;
    return rule;
}

} // namespace
} // namespace mallard::c

struct mallard_multipool {
    void* (*allocate)(mallard_multipool&, std::size_t bytes, std::size_t align) noexcept;
    void (*free)(mallard_multipool&, void*, std::size_t bytes, std::size_t align) noexcept;
    const mallard::c::multipool_functions* rest;
};

namespace mallard::c {
namespace {

template <sync Threads, reuse Order, check Checks>
struct alignas(cache_line_bytes) multipool_of : mallard_multipool {
    static constexpr multipool_options options{
        .grow = growth::at_run_time(), .threads = Threads, .order = Order, .checks = Checks};

    multipool<ref<chosen_source>, options> blocks;
    origin its;

    multipool_of(origin&& memory, const growth& rule) noexcept;
};

/// The multipool of a handle.
template <class Multipool>
Multipool& in(mallard_multipool& m) noexcept
{
    return static_cast<Multipool&>(m);
}
template <class Multipool>
const Multipool& in(const mallard_multipool& m) noexcept
{
    return static_cast<const Multipool&>(m);
}

template <class Multipool>
[[gnu::cold, gnu::noinline]] void* refuse(const mallard_multipool& m) noexcept
{
    in<Multipool>(m).its.fail_allocation("mallard_multipool_allocate");
    return nullptr;
}

// gnu::flatten: g++ 12 would not inline the size class lookup, since many functions use it.
template <class Multipool>
[[gnu::flatten]] void* allocate_in(mallard_multipool& m, std::size_t bytes,
                                   std::size_t align) noexcept
{
    void* const block = in<Multipool>(m).blocks.try_allocate(verified(bytes, align));
    return block != nullptr ? block : refuse<Multipool>(m);
}

template <class Multipool>
[[gnu::flatten]] void free_in(mallard_multipool& m, void* block, std::size_t bytes,
                              std::size_t align) noexcept
{
    in<Multipool>(m).blocks.deallocate(block, verified(bytes, align));
}

template <class Multipool>
constexpr multipool_functions functions_of = {
    .destroy = [](mallard_multipool& m) noexcept { end_handle(in<Multipool>(m)); },
    .reset = [](mallard_multipool& m) noexcept { in<Multipool>(m).blocks.reset(); },
    .release = [](mallard_multipool& m) noexcept { in<Multipool>(m).blocks.release(); },
    .trim = [](mallard_multipool& m,
               std::size_t keep) noexcept { in<Multipool>(m).blocks.trim(keep); },
    .owns = [](const mallard_multipool& m,
               const void* p) noexcept { return in<Multipool>(m).blocks.owns(p); },
    .classify = [](const mallard_multipool& m,
                   const void* p) noexcept { return in<Multipool>(m).blocks.classify(p); },
    .stats = [](const mallard_multipool& m) noexcept { return in<Multipool>(m).blocks.stats(); },
};

template <sync Threads, reuse Order, check Checks>
multipool_of<Threads, Order, Checks>::multipool_of(origin&& memory, const growth& rule) noexcept
    : mallard_multipool{allocate_in<multipool_of>, free_in<multipool_of>,
                        &functions_of<multipool_of>},
      blocks(ref(its.from), rule), its(std::move(memory))
{
}

template <class Multipool>
mallard_multipool* make(const char* function, const choice& chosen) noexcept
{
    return make_handle<Multipool>(function, chosen);
}

using maker = mallard_multipool* (*)(const char*, const choice&) noexcept;

/// Null for the lock-free mode: a multipool grows.
template <std::size_t I>
constexpr maker maker_at() noexcept
{
    if constexpr (sync_at(I) == sync::lock_free)
        return nullptr;
    else
        return make<multipool_of<sync_at(I), reuse_at(I), check_at(I)>>;
}

constexpr makers<maker> all_makers = []<std::size_t... I>(std::index_sequence<I...>) {
    return makers<maker>{maker_at<I>()...};
}(std::make_index_sequence<makers<maker>().size()>());

[[gnu::cold]] mallard_error fail_null(const char* function) noexcept
{
    return fail(messages::null_handle, function, "multipool", "mallard_multipool_create");
}

/// Allocates with unusual arguments: alignment 0 means the default; others are errors.
[[gnu::noinline]] void* allocate_with_care(mallard_multipool* multipool, std::size_t bytes,
                                           std::size_t align) noexcept
{
    if (multipool != nullptr && align == 0)
        return multipool->allocate(*multipool, bytes, alignof(std::max_align_t));
    if (multipool == nullptr)
        fail_null("mallard_multipool_allocate");
    else
        fail(messages::bad_align, "mallard_multipool_allocate", align);
    return nullptr;
}

[[gnu::noinline]] void free_with_care(mallard_multipool* multipool, void* block, std::size_t bytes,
                                      std::size_t align) noexcept
{
    if (multipool == nullptr || block == nullptr)
        return;
    if (align == 0)
        multipool->free(*multipool, block, bytes, alignof(std::max_align_t));
    else
        fail(messages::bad_align, "mallard_multipool_free", align);
}

} // namespace
} // namespace mallard::c

using namespace mallard;

mallard_multipool* mallard_multipool_create(const mallard_multipool_options* options)
{
    constexpr const char* function = "mallard_multipool_create";
    mallard_multipool_options o;
    c::choice chosen;
    if (!c::read_struct(function, "mallard_multipool_options", options, o) ||
        !c::read_choice(function, c::common_of(o), c::growth_for(o), chosen))
        return nullptr;
    chosen.fills_buffer = false; // the pools share the buffer
    c::maker const make = c::all_makers[c::index_of(chosen)];
    if (make != nullptr)
        return make(function, chosen);
    c::fail(c::messages::unsupported_sync, function, "a multipool",
            c::sync_names[MALLARD_SYNC_LOCK_FREE], c::sync_names[MALLARD_SYNC_THREAD_CACHED]);
    return nullptr;
}

void mallard_multipool_destroy(mallard_multipool* multipool)
{
    if (multipool != nullptr)
        multipool->rest->destroy(*multipool);
}

void* mallard_multipool_allocate(mallard_multipool* multipool, size_t bytes, size_t align)
{
    if (multipool == nullptr || !is_power_of_two(align)) [[unlikely]]
        return c::allocate_with_care(multipool, bytes, align);
    return multipool->allocate(*multipool, bytes, align);
}

void mallard_multipool_free(mallard_multipool* multipool, void* block, size_t bytes, size_t align)
{
    if (multipool == nullptr || block == nullptr || !is_power_of_two(align)) [[unlikely]]
        return c::free_with_care(multipool, block, bytes, align);
    multipool->free(*multipool, block, bytes, align);
}

void mallard_multipool_reset(mallard_multipool* multipool)
{
    if (multipool != nullptr)
        multipool->rest->reset(*multipool);
}

void mallard_multipool_release(mallard_multipool* multipool)
{
    if (multipool != nullptr)
        multipool->rest->release(*multipool);
}

void mallard_multipool_trim(mallard_multipool* multipool, size_t keep_bytes_of_each_pool)
{
    if (multipool != nullptr)
        multipool->rest->trim(*multipool, keep_bytes_of_each_pool);
}

int mallard_multipool_owns(const mallard_multipool* multipool, const void* p)
{
    if (multipool != nullptr)
        return multipool->rest->owns(*multipool, p);
    c::fail_null("mallard_multipool_owns");
    return 0;
}

mallard_validity mallard_multipool_classify(const mallard_multipool* multipool, const void* p)
{
    if (multipool != nullptr)
        return static_cast<mallard_validity>(multipool->rest->classify(*multipool, p));
    c::fail_null("mallard_multipool_classify");
    return MALLARD_MISS;
}

int mallard_multipool_stats(const mallard_multipool* multipool, mallard_stats* out)
{
    constexpr const char* function = "mallard_multipool_stats";
    if (multipool == nullptr)
        return c::fail_null(function);
    return c::write_stats(function, multipool->rest->stats(*multipool), out);
}
