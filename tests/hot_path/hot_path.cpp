// Hot paths, each with a maximum number of instructions. `tools/check-hot-path` compiles this file
// and counts the instructions of the shortest path from each entry to its `ret`.
#include <mallard/adapt/by_size.hpp>
#include <mallard/adapt/limited.hpp>
#include <mallard/adapt/observed.hpp>
#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <mallard/object_pool.hpp>
#include <mallard/pool.hpp>
#include <mallard/slot_map.hpp>
#include <mallard/sync.hpp>

using lifo = mallard::pool<mallard::default_heap,
                           mallard::pool_options{.block = 64, .order = mallard::reuse::lifo}>;
using ordered = mallard::pool<mallard::default_heap,
                              mallard::pool_options{.block = 64, .order = mallard::reuse::ordered}>;
using cached =
    mallard::pool<mallard::default_heap,
                  mallard::pool_options{.block = 64, .threads = mallard::sync::thread_cached}>;
using lock_free = mallard::pool<mallard::default_heap,
                                mallard::pool_options{.block = 64,
                                                      .grow = mallard::growth::none(4096),
                                                      .threads = mallard::sync::lock_free}>;
using slot_map = mallard::slot_map<std::uint64_t>;
using slot_map_in_chunks = mallard::slot_map<std::uint64_t, mallard::key32, mallard::default_heap>;

// Adaptors around the list pool above, for a layout known at compile time.
constexpr mallard::layout fits{64, 16};
using off = mallard::adapt_if<false, mallard::counted<lifo>>;
using counted = mallard::adapt_if<true, mallard::counted<lifo>>;
using limited = mallard::limited<lifo>;
struct observer {
    [[gnu::noinline]] void exhausted(mallard::layout) noexcept {}
};
using observed = mallard::observed<lifo, observer>;
using by_size = mallard::by_size<64, lifo, mallard::multipool<>>;
using objects = mallard::object_pool<long>;

extern "C" {

// hot: 5 instructions, 1 test
void* pool_lifo_allocate(lifo& pool)
{
    return pool.allocate();
}

// hot: 5 instructions, 1 test
void* pool_lifo_try_allocate(lifo& pool)
{
    return pool.try_allocate();
}

// hot: 3 instructions, 0 tests
void pool_lifo_deallocate(lifo& pool, void* block)
{
    pool.deallocate(block);
}

// hot: 6 instructions, 1 test
void* pool_ordered_allocate(ordered& pool)
{
    return pool.allocate();
}

// hot: 7 instructions, 1 test
void pool_ordered_deallocate(ordered& pool, void* block)
{
    pool.deallocate(block);
}

// hot: 17 instructions, 2 tests
void* pool_cached_allocate(cached& pool)
{
    return pool.allocate();
}

// hot: 17 instructions, 2 tests
void pool_cached_deallocate(cached& pool, void* block)
{
    pool.deallocate(block);
}

// hot: 20 instructions, 2 tests
void* pool_lock_free_allocate(lock_free& pool)
{
    return pool.allocate();
}

// hot: 16 instructions, 1 test
void pool_lock_free_deallocate(lock_free& pool, void* block)
{
    pool.deallocate(block);
}

// hot: 10 instructions, 1 test
long* object_pool_make(objects& pool, long value)
{
    return pool.make(value).leak();
}

// hot: 6 instructions, 1 test
void object_pool_destroy(objects& pool, long* object)
{
    pool.destroy(object);
}

// Models the destructor of a box. The shorter path, for the end of the pool, does not count.
// hot: 12 instructions, 1 test
void object_pool_drop(long* object)
{
    if (objects::owner_of(object) == nullptr)
        __builtin_unreachable();
    objects::drop(object);
}

// hot: 7 instructions, 1 test
void* multipool_allocate_constant(mallard::multipool<>& pools)
{
    return pools.allocate({48, 8});
}

// hot: 4 instructions, 0 tests
void multipool_deallocate_constant(mallard::multipool<>& pools, void* block)
{
    pools.deallocate(block, {48, 8});
}

// hot: 7 instructions, 1 test
void* arena_allocate_constant(mallard::arena<>& arena)
{
    return arena.allocate({24, 8});
}

void slot_map_missed();

// hot: 6 instructions, 1 test
void slot_map_get(slot_map& map, mallard::key32 key)
{
    if (std::uint64_t* const found = map.get(key))
        *found = 0;
    else
        slot_map_missed();
}

// hot: 9 instructions, 1 test
void slot_map_in_chunks_get(slot_map_in_chunks& map, mallard::key32 key)
{
    if (std::uint64_t* const found = map.get(key))
        *found = 0;
    else
        slot_map_missed();
}

// hot: 20 instructions, 1 test
std::uint32_t slot_map_insert(slot_map& map, std::uint64_t value)
{
    return map.insert(value).value();
}

// g++ 12 needs 20 instructions, and g++ 14 needs one more.
// hot: 21 instructions, 2 tests
bool slot_map_erase(slot_map& map, mallard::key32 key)
{
    return map.erase(key);
}

// hot: 5 instructions, 1 test
void* adaptor_off_allocate(off& pool)
{
    return pool.allocate(fits);
}

// hot: 3 instructions, 0 tests
void adaptor_off_deallocate(off& pool, void* block)
{
    pool.deallocate(block, fits);
}

// g++ needs 5 instructions. clang saves registers that only the cold path needs.
// hot: 12 instructions, 1 test
void* observed_allocate(observed& pool)
{
    return pool.allocate(fits);
}

// hot: 5 instructions, 1 test
void* by_size_allocate(by_size& pools)
{
    return pools.allocate(fits);
}

// hot: 20 instructions, 3 tests
void* counted_allocate(counted& pool)
{
    return pool.allocate(fits);
}

// hot: 5 instructions, 0 tests
void counted_deallocate(counted& pool, void* block)
{
    pool.deallocate(block, fits);
}

// hot: 18 instructions, 3 tests
void* limited_allocate(limited& pool)
{
    return pool.allocate(fits);
}

// hot: 5 instructions, 0 tests
void limited_deallocate(limited& pool, void* block)
{
    pool.deallocate(block, fits);
}

} // extern "C"

void slot_map_missed() {}

int main() {}
