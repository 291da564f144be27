// The pools of the C API, with a class for each combination of sync, reuse and check.
#include "handle.hpp"

#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

struct mallard_pool : mallard::c::handle {
    void* (*allocate)(mallard_pool&) noexcept = nullptr;
    void (*free)(mallard_pool&, void*) noexcept = nullptr;

    virtual bool allocate_batch(std::span<void*>) noexcept = 0;
    virtual void free_batch(std::span<void* const>) noexcept = 0;
    virtual mallard::slot_shape shape() const noexcept = 0;
    virtual bool owns(const void*) const noexcept = 0;
    virtual mallard::validity classify(const void*) const noexcept = 0;
    virtual void for_each(mallard::c::visitor, void* context) noexcept = 0;

protected:
    ~mallard_pool() = default;
};

namespace mallard::c {
namespace {

template <sync Threads, reuse Order, check Checks>
constexpr pool_options options_of{
    .grow = growth::at_run_time(), .threads = Threads, .order = Order, .checks = Checks};

template <sync Threads, reuse Order, check Checks>
struct pool_of final
    : handle_of<mallard_pool, pool<ref<chosen_source>, options_of<Threads, Order, Checks>>> {
    using blocks_type = pool<ref<chosen_source>, options_of<Threads, Order, Checks>>;

    pool_of(origin&& memory, const growth& rule, std::size_t block_bytes,
            std::size_t align) noexcept
        : handle_of<mallard_pool, blocks_type>(std::move(memory), [&](ref<chosen_source> from) {
              return blocks_type(block_bytes, align, from, rule);
          })
    {
        this->allocate = [](mallard_pool& p) noexcept -> void* {
            auto& self = static_cast<pool_of&>(p);
            void* const block = self.blocks.try_allocate();
            return block != nullptr ? block : self.refuse("mallard_pool_allocate");
        };
        this->free = [](mallard_pool& p, void* block) noexcept {
            static_cast<pool_of&>(p).blocks.deallocate(block);
        };
    }

    void destroy() noexcept override { end_handle(*this); }
    bool allocate_batch(std::span<void*> out) noexcept override
    {
        return this->blocks.try_allocate_batch(out) ||
               this->refuse("mallard_pool_allocate_batch") != nullptr;
    }
    void free_batch(std::span<void* const> all) noexcept override
    {
        this->blocks.deallocate_batch(all);
    }
    slot_shape shape() const noexcept override
    {
        return {this->blocks.block_bytes(), this->blocks.block_align()};
    }
    bool owns(const void* p) const noexcept override { return this->blocks.owns(p); }
    validity classify(const void* p) const noexcept override { return this->blocks.classify(p); }
    void for_each(visitor visit, void* context) noexcept override
    {
        this->blocks.for_each([=](void* block) { call_visit(visit, context, block); });
    }

    /// Returns the size of a buffer for `count` blocks. Returns 0 if chunks are aligned to their
    /// size, because then the buffer's address determines how many blocks fit.
    static std::size_t bytes_for(slot_shape asked, std::size_t count) noexcept
    {
        constexpr pool_options options = options_of<Threads, Order, Checks>;
        if constexpr (Order == reuse::ordered)
            return 0;
        auto const shape = slot_shape::of(asked.bytes, asked.align, options.block_min());
        return saturating_add(pool_mode<Threads>::template core<options>::bytes_for(shape, count),
                              sizeof(pool_of) + alignof(pool_of));
    }
};

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

/// Returns the maker for the options. If an option is not valid, records the failure and returns
/// null.
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
        pool->destroy();
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
    if (pool->allocate_batch({out, count}))
        return MALLARD_ERROR_NONE;
    std::fill_n(out, count, nullptr);
    return mallard_last_error();
}

void mallard_pool_free_batch(mallard_pool* pool, void* const* blocks, size_t count)
{
    if (pool == nullptr || blocks == nullptr)
        return;
    std::span<void* const> left(blocks, count);
    while (!left.empty()) { // frees the blocks before the next null pointer
        auto const end = std::find(left.begin(), left.end(), nullptr);
        auto const length = static_cast<std::size_t>(end - left.begin());
        pool->free_batch(left.first(length));
        left = left.subspan(std::min(length + 1, left.size()));
    }
}

void mallard_pool_reset(mallard_pool* pool)
{
    if (pool != nullptr)
        pool->reset();
}

void mallard_pool_release(mallard_pool* pool)
{
    if (pool != nullptr)
        pool->release();
}

void mallard_pool_trim(mallard_pool* pool, size_t keep_bytes)
{
    if (pool != nullptr)
        pool->trim(keep_bytes);
}

size_t mallard_pool_block_bytes(const mallard_pool* pool)
{
    if (pool != nullptr)
        return pool->shape().bytes;
    c::fail_null("mallard_pool_block_bytes");
    return 0;
}

size_t mallard_pool_block_align(const mallard_pool* pool)
{
    if (pool != nullptr)
        return pool->shape().align;
    c::fail_null("mallard_pool_block_align");
    return 0;
}

int mallard_pool_owns(const mallard_pool* pool, const void* p)
{
    if (pool != nullptr)
        return pool->owns(p);
    c::fail_null("mallard_pool_owns");
    return 0;
}

mallard_validity mallard_pool_classify(const mallard_pool* pool, const void* p)
{
    if (pool != nullptr)
        return static_cast<mallard_validity>(pool->classify(p));
    c::fail_null("mallard_pool_classify");
    return MALLARD_MISS;
}

int mallard_pool_stats(const mallard_pool* pool, mallard_stats* out)
{
    constexpr const char* function = "mallard_pool_stats";
    if (pool == nullptr)
        return c::fail_null(function);
    return c::write_stats(function, pool->stats(), out);
}

int mallard_pool_for_each(mallard_pool* pool, void (*visit)(void* context, void* block),
                          void* context)
{
    constexpr const char* function = "mallard_pool_for_each";
    if (pool == nullptr)
        return c::fail_null(function);
    if (visit == nullptr)
        return c::fail(c::messages::null_argument, function, "visit", "a function");
    pool->for_each(visit, context);
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
