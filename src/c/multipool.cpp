// The multipools of the C API. Like the pools, they have a class for each combination of sync,
// reuse and check.
#include "handle.hpp"

#include <mallard/multipool.hpp>
#include <mallard/sync.hpp>

struct mallard_multipool : mallard::c::handle {
    void* (*allocate)(mallard_multipool&, std::size_t bytes, std::size_t align) noexcept = nullptr;
    void (*free)(mallard_multipool&, void*, std::size_t bytes,
                 std::size_t align) noexcept = nullptr;

    virtual bool owns(const void*) const noexcept = 0;
    virtual mallard::validity classify(const void*) const noexcept = 0;

protected:
    ~mallard_multipool() = default;
};

namespace mallard::c {
namespace {

/// Returns the growth rule of each pool. With a buffer, the first chunks are half as large, because
/// all pools share the buffer.
growth growth_for(const mallard_multipool_options& o) noexcept
{
    growth rule = multipool_options().grow;
    if (o.buffer != nullptr)
        rule.first /= 2;
    return rule;
}

template <sync Threads, reuse Order, check Checks>
constexpr multipool_options options_of{
    .grow = growth::at_run_time(), .threads = Threads, .order = Order, .checks = Checks};

template <sync Threads, reuse Order, check Checks>
struct multipool_of final
    : handle_of<mallard_multipool,
                multipool<ref<chosen_source>, options_of<Threads, Order, Checks>>> {
    using blocks_type = multipool<ref<chosen_source>, options_of<Threads, Order, Checks>>;

    multipool_of(origin&& memory, const growth& rule) noexcept
        : handle_of<mallard_multipool, blocks_type>(
              std::move(memory), [&](ref<chosen_source> from) { return blocks_type(from, rule); })
    {
        this->allocate = allocate_in;
        this->free = free_in;
    }

    // Without gnu::flatten, g++ 12 would not inline the size class look-up, since many functions
    // use it.
    [[gnu::flatten]] static void* allocate_in(mallard_multipool& m, std::size_t bytes,
                                              std::size_t align) noexcept
    {
        auto& self = static_cast<multipool_of&>(m);
        void* const block = self.blocks.try_allocate(verified(bytes, align));
        return block != nullptr ? block : self.refuse("mallard_multipool_allocate");
    }
    [[gnu::flatten]] static void free_in(mallard_multipool& m, void* block, std::size_t bytes,
                                         std::size_t align) noexcept
    {
        static_cast<multipool_of&>(m).blocks.deallocate(block, verified(bytes, align));
    }

    void destroy() noexcept override { end_handle(*this); }
    bool owns(const void* p) const noexcept override { return this->blocks.owns(p); }
    validity classify(const void* p) const noexcept override { return this->blocks.classify(p); }
};

template <class Multipool>
mallard_multipool* make(const char* function, const choice& chosen) noexcept
{
    return make_handle<Multipool>(function, chosen);
}

using maker = mallard_multipool* (*)(const char*, const choice&) noexcept;

/// Returns the function that makes the multipool of table element `I`. Returns null for the
/// lock-free mode, because that mode needs a fixed capacity, and a multipool grows.
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

/// Serves a call with a null handle or an unusual alignment. The alignment 0 means the default
/// alignment. A null handle or any other invalid argument is an error.
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
        multipool->destroy();
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
        multipool->reset();
}

void mallard_multipool_release(mallard_multipool* multipool)
{
    if (multipool != nullptr)
        multipool->release();
}

void mallard_multipool_trim(mallard_multipool* multipool, size_t keep_bytes_of_each_pool)
{
    if (multipool != nullptr)
        multipool->trim(keep_bytes_of_each_pool);
}

int mallard_multipool_owns(const mallard_multipool* multipool, const void* p)
{
    if (multipool != nullptr)
        return multipool->owns(p);
    c::fail_null("mallard_multipool_owns");
    return 0;
}

mallard_validity mallard_multipool_classify(const mallard_multipool* multipool, const void* p)
{
    if (multipool != nullptr)
        return static_cast<mallard_validity>(multipool->classify(p));
    c::fail_null("mallard_multipool_classify");
    return MALLARD_MISS;
}

int mallard_multipool_stats(const mallard_multipool* multipool, mallard_stats* out)
{
    constexpr const char* function = "mallard_multipool_stats";
    if (multipool == nullptr)
        return c::fail_null(function);
    return c::write_stats(function, multipool->stats(), out);
}
