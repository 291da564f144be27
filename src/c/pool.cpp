// The pools of the C API. There is a class for each combination of sync, reuse and check. A handle
// begins with the two functions that have to be fast, as pointers.
#include "handle.hpp"

#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

namespace mallard::c {
namespace {

/// The functions of a pool that are called through a second pointer.
struct pool_functions {
    void (*destroy)(mallard_pool&) noexcept;
    bool (*allocate_batch)(mallard_pool&, std::span<void*>) noexcept;
    void (*free_batch)(mallard_pool&, std::span<void* const>) noexcept;
    void (*reset)(mallard_pool&) noexcept;
    void (*release)(mallard_pool&) noexcept;
    void (*trim)(mallard_pool&, std::size_t keep) noexcept;
    slot_shape (*shape)(const mallard_pool&) noexcept;
    bool (*owns)(const mallard_pool&, const void*) noexcept;
    validity (*classify)(const mallard_pool&, const void*) noexcept;
    statistics (*stats)(const mallard_pool&) noexcept;
    void (*for_each)(mallard_pool&, visitor, void* context) noexcept;
};

} // namespace
} // namespace mallard::c

struct mallard_pool {
    void* (*allocate)(mallard_pool&) noexcept;
    void (*free)(mallard_pool&, void*) noexcept;
    const mallard::c::pool_functions* rest;
};

namespace mallard::c {
namespace {

template <sync Threads, reuse Order, check Checks>
struct alignas(cache_line_bytes) pool_of : mallard_pool {
    static constexpr pool_options options{
        .grow = growth::at_run_time(), .threads = Threads, .order = Order, .checks = Checks};

    pool<ref<chosen_source>, options> blocks; // its front is in the line of the functions
    origin its;

    pool_of(origin&& memory, const growth& rule, std::size_t block_bytes,
            std::size_t align) noexcept;

    /// The bytes of a buffer for `count` blocks. 0 if chunks are aligned to their size: then the
    /// buffer's address decides how many blocks fit.
    static std::size_t bytes_for(slot_shape asked, std::size_t count) noexcept
    {
        if constexpr (Order == reuse::ordered)
            return 0;
        auto const shape = slot_shape::of(asked.bytes, asked.align, options.block_min());
        return saturating_add(pool_mode<Threads>::template core<options>::bytes_for(shape, count),
                              sizeof(pool_of) + alignof(pool_of));
    }
};

/// The pool of a handle.
template <class Pool>
Pool& in(mallard_pool& p) noexcept
{
    return static_cast<Pool&>(p);
}
template <class Pool>
const Pool& in(const mallard_pool& p) noexcept
{
    return static_cast<const Pool&>(p);
}

template <class Pool>
[[gnu::cold, gnu::noinline]] void* refuse(const mallard_pool& p) noexcept
{
    in<Pool>(p).its.fail_allocation("mallard_pool_allocate");
    return nullptr;
}

template <class Pool>
void* allocate_in(mallard_pool& p) noexcept
{
    void* const block = in<Pool>(p).blocks.try_allocate();
    return block != nullptr ? block : refuse<Pool>(p);
}

template <class Pool>
void free_in(mallard_pool& p, void* block) noexcept
{
    in<Pool>(p).blocks.deallocate(block);
}

template <class Pool>
constexpr pool_functions functions_of = {
    .destroy = [](mallard_pool& p) noexcept { end_handle(in<Pool>(p)); },
    .allocate_batch =
        [](mallard_pool& p, std::span<void*> out) noexcept {
            if (in<Pool>(p).blocks.try_allocate_batch(out))
                return true;
            in<Pool>(p).its.fail_allocation("mallard_pool_allocate_batch");
            return false;
        },
    .free_batch =
        [](mallard_pool& p, std::span<void* const> blocks) noexcept {
            in<Pool>(p).blocks.deallocate_batch(blocks);
        },
    .reset = [](mallard_pool& p) noexcept { in<Pool>(p).blocks.reset(); },
    .release = [](mallard_pool& p) noexcept { in<Pool>(p).blocks.release(); },
    .trim = [](mallard_pool& p, std::size_t keep) noexcept { in<Pool>(p).blocks.trim(keep); },
    .shape =
        [](const mallard_pool& p) noexcept {
            return slot_shape{in<Pool>(p).blocks.block_bytes(), in<Pool>(p).blocks.block_align()};
        },
    .owns = [](const mallard_pool& p,
               const void* q) noexcept { return in<Pool>(p).blocks.owns(q); },
    .classify = [](const mallard_pool& p,
                   const void* q) noexcept { return in<Pool>(p).blocks.classify(q); },
    .stats = [](const mallard_pool& p) noexcept { return in<Pool>(p).blocks.stats(); },
    .for_each =
        [](mallard_pool& p, visitor visit, void* context) noexcept {
            in<Pool>(p).blocks.for_each([=](void* block) { call_visit(visit, context, block); });
        },
};

template <sync Threads, reuse Order, check Checks>
pool_of<Threads, Order, Checks>::pool_of(origin&& memory, const growth& rule,
                                         std::size_t block_bytes, std::size_t align) noexcept
    : mallard_pool{allocate_in<pool_of>, free_in<pool_of>, &functions_of<pool_of>},
      blocks(block_bytes, align, ref(its.from), rule), its(std::move(memory))
{
}

template <class Pool>
mallard_pool* make(const char* function, const choice& chosen, slot_shape asked) noexcept
{
    return make_handle<Pool>(function, chosen, asked.bytes, asked.align);
}

struct maker {
    mallard_pool* (*make)(const char* function, const choice&, slot_shape asked) noexcept;
    std::size_t (*bytes_for)(slot_shape asked, std::size_t count) noexcept;
};

template <class Pool>
constexpr maker maker_of{make<Pool>, Pool::bytes_for};

constexpr makers<maker> all_makers = []<std::size_t... I>(std::index_sequence<I...>) {
    return makers<maker>{maker_of<pool_of<sync_at(I), reuse_at(I), check_at(I)>>...};
}(std::make_index_sequence<makers<maker>().size()>());

[[gnu::cold]] mallard_error fail_null(const char* function) noexcept
{
    return fail(messages::null_handle, function, "pool", "mallard_pool_create");
}

bool verify_shape(const char* function, std::size_t block_bytes, std::size_t align) noexcept
{
    constexpr std::size_t most = bytes_max / 4; // sums of up to four sizes do not overflow
    if (block_bytes == 0)
        return reject(messages::no_block_bytes, function);
    if (align != 0 && !is_power_of_two(align))
        return reject(messages::bad_align, function, align);
    if (block_bytes > most || align > most)
        return reject(messages::too_large, function, block_bytes, align);
    return true;
}

bool read_pool(const char* function, const mallard_pool_options* options, choice& chosen,
               slot_shape& asked) noexcept
{
    mallard_pool_options o;
    if (options == nullptr)
        return reject(messages::null_argument, function, "options", "a struct with block_bytes");
    if (!read_struct(function, "mallard_pool_options", options, o) ||
        !verify_shape(function, o.block_bytes, o.align) ||
        !read_choice(function, common_of(o), pool_options().grow, chosen))
        return false;
    if (chosen.rule.limit < o.block_bytes)
        return reject(messages::out_of_order, function, "limit_bytes", o.limit_bytes, "block_bytes",
                      o.block_bytes);
    if (o.sync == MALLARD_SYNC_LOCK_FREE && o.growth != MALLARD_GROWTH_NONE && !chosen.fills_buffer)
        return reject(messages::growing_lock_free, function, growth_names[o.growth]);
    if (o.reuse == MALLARD_REUSE_DEFAULT && o.buffer == nullptr)
        chosen.order = reuse::ordered;
    asked = {o.block_bytes, o.align};
    return true;
}

/// The maker for verified options. Null, with a recorded failure, if an option is not valid.
const maker* maker_for(const char* function, const mallard_pool_options* options, choice& chosen,
                       slot_shape& asked) noexcept
{
    if (!read_pool(function, options, chosen, asked))
        return nullptr;
    return &all_makers[index_of(chosen)];
}

} // namespace
} // namespace mallard::c

using namespace mallard;

mallard_pool* mallard_pool_create(const mallard_pool_options* options)
{
    constexpr const char* function = "mallard_pool_create";
    c::choice chosen;
    slot_shape asked;
    c::maker const* const found = c::maker_for(function, options, chosen, asked);
    return found == nullptr ? nullptr : found->make(function, chosen, asked);
}

void mallard_pool_destroy(mallard_pool* pool)
{
    if (pool != nullptr)
        pool->rest->destroy(*pool);
}

void* mallard_pool_allocate(mallard_pool* pool)
{
    if (pool == nullptr) [[unlikely]] {
        c::fail_null("mallard_pool_allocate");
        return nullptr;
    }
    return pool->allocate(*pool);
}

void mallard_pool_free(mallard_pool* pool, void* block)
{
    if (pool != nullptr && block != nullptr) [[likely]]
        pool->free(*pool, block);
}

int mallard_pool_allocate_batch(mallard_pool* pool, void** out, size_t count)
{
    constexpr const char* function = "mallard_pool_allocate_batch";
    if (pool == nullptr)
        return c::fail_null(function);
    if (out == nullptr && count != 0)
        return c::fail(c::messages::null_argument, function, "out", "an array");
    if (pool->rest->allocate_batch(*pool, {out, count}))
        return MALLARD_ERROR_NONE;
    std::fill_n(out, count, nullptr);
    return mallard_last_error();
}

void mallard_pool_free_batch(mallard_pool* pool, void* const* blocks, size_t count)
{
    if (pool == nullptr || blocks == nullptr)
        return;
    std::span<void* const> left(blocks, count);
    while (!left.empty()) { // free the blocks before the next null
        auto const end = std::find(left.begin(), left.end(), nullptr);
        auto const length = static_cast<std::size_t>(end - left.begin());
        pool->rest->free_batch(*pool, left.first(length));
        left = left.subspan(std::min(length + 1, left.size()));
    }
}

void mallard_pool_reset(mallard_pool* pool)
{
    if (pool != nullptr)
        pool->rest->reset(*pool);
}

void mallard_pool_release(mallard_pool* pool)
{
    if (pool != nullptr)
        pool->rest->release(*pool);
}

void mallard_pool_trim(mallard_pool* pool, size_t keep_bytes)
{
    if (pool != nullptr)
        pool->rest->trim(*pool, keep_bytes);
}

size_t mallard_pool_block_bytes(const mallard_pool* pool)
{
    if (pool != nullptr)
        return pool->rest->shape(*pool).bytes;
    c::fail_null("mallard_pool_block_bytes");
    return 0;
}

size_t mallard_pool_block_align(const mallard_pool* pool)
{
    if (pool != nullptr)
        return pool->rest->shape(*pool).align;
    c::fail_null("mallard_pool_block_align");
    return 0;
}

int mallard_pool_owns(const mallard_pool* pool, const void* p)
{
    if (pool != nullptr)
        return pool->rest->owns(*pool, p);
    c::fail_null("mallard_pool_owns");
    return 0;
}

mallard_validity mallard_pool_classify(const mallard_pool* pool, const void* p)
{
    if (pool != nullptr)
        return static_cast<mallard_validity>(pool->rest->classify(*pool, p));
    c::fail_null("mallard_pool_classify");
    return MALLARD_MISS;
}

int mallard_pool_stats(const mallard_pool* pool, mallard_stats* out)
{
    constexpr const char* function = "mallard_pool_stats";
    if (pool == nullptr)
        return c::fail_null(function);
    return c::write_stats(function, pool->rest->stats(*pool), out);
}

int mallard_pool_for_each(mallard_pool* pool, void (*visit)(void* context, void* block),
                          void* context)
{
    constexpr const char* function = "mallard_pool_for_each";
    if (pool == nullptr)
        return c::fail_null(function);
    if (visit == nullptr)
        return c::fail(c::messages::null_argument, function, "visit", "a function");
    pool->rest->for_each(*pool, visit, context);
    return MALLARD_ERROR_NONE;
}

size_t mallard_pool_bytes_for(const mallard_pool_options* options, size_t count)
{
    constexpr const char* function = "mallard_pool_bytes_for";
    c::choice chosen;
    slot_shape asked;
    c::maker const* const found = c::maker_for(function, options, chosen, asked);
    if (found == nullptr)
        return 0;
    size_t const bytes = found->bytes_for(asked, count);
    if (bytes == 0)
        c::fail(c::messages::unsupported_order, function);
    else if (bytes > bytes_max)
        c::fail(c::messages::too_large, function, bytes, asked.align);
    else
        return bytes;
    return 0;
}
