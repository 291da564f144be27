// The hot paths whose length is a promise. `tools/check-hot-path` compiles this
// file and counts the shortest way from each entry to its `ret`.
#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <mallard/object_pool.hpp>
#include <mallard/pool.hpp>

using lifo = mallard::pool<mallard::default_heap,
                           mallard::pool_options{.block = 64, .order = mallard::reuse::lifo}>;
using ordered = mallard::pool<mallard::default_heap,
                              mallard::pool_options{.block = 64, .order = mallard::reuse::ordered}>;
using cached =
    mallard::pool<mallard::default_heap,
                  mallard::pool_options{.block = 64, .threads = mallard::sync::thread_cached}>;
using objects = mallard::object_pool<long>;
using slots = mallard::slot_pool<long, mallard::default_heap, mallard::object_pool_options{}>;

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

// What a box does at its end. The shorter way, where the whole pool ends, is not meant.
// hot: 12 instructions, 1 test
void object_pool_drop(long* object)
{
    if (slots::owner_of(object) == nullptr)
        __builtin_unreachable();
    objects::drop(object);
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

} // extern "C"

int main() {}
