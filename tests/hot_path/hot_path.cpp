// The hot paths whose length is a promise. `tools/check-hot-path` compiles this
// file and counts the shortest way from each entry to its `ret`.
#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <mallard/pool.hpp>
#include <mallard/slot_map.hpp>

using lifo = mallard::pool<mallard::default_heap,
                           mallard::pool_options{.block = 64, .order = mallard::reuse::lifo}>;
using ordered = mallard::pool<mallard::default_heap,
                              mallard::pool_options{.block = 64, .order = mallard::reuse::ordered}>;
using cached =
    mallard::pool<mallard::default_heap,
                  mallard::pool_options{.block = 64, .threads = mallard::sync::thread_cached}>;
using slot_map = mallard::slot_map<std::uint64_t>;
using slot_map_in_chunks = mallard::slot_map<std::uint64_t, mallard::key32, mallard::default_heap>;

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

// hot: 7 instructions, 1 test
void* multipool_allocate_constant(mallard::multipool<>& pools)
{
    return pools.allocate({48, 8});
}

// hot: 3 instructions, 0 tests
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

// hot: 20 instructions, 2 tests
bool slot_map_erase(slot_map& map, mallard::key32 key)
{
    return map.erase(key);
}

} // extern "C"

void slot_map_missed() {}

int main() {}
