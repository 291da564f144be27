// Instantiates every member of the allocators for several threads.
#include <mallard/heap.hpp>
#include <mallard/mallard.hpp>

namespace mallard {

constexpr pool_options behind_a_mutex{.threads = sync::mutex};
constexpr pool_options without_a_lock{
    .block = 64, .grow = growth::none(4096), .threads = sync::lock_free};
constexpr pool_options with_caches{.threads = sync::thread_cached};
constexpr pool_options first_in_first_out{.block = 64, .order = reuse::fifo};
constexpr multipool_options caches_of_all{.threads = sync::thread_cached};
constexpr multipool_options mutex_of_all{.threads = sync::mutex};
constexpr object_pool_options objects_with_caches{.threads = sync::thread_cached};

template class pool<default_heap, behind_a_mutex>;
template class pool<default_heap, without_a_lock>;
template class pool<default_heap, with_caches>;
template class pool<default_heap, first_in_first_out>;
template class multipool<default_heap, caches_of_all>;
template class multipool<default_heap, mutex_of_all>;
template class object_pool<int, default_heap, objects_with_caches>;
template class shared_arena<>;
template class pmr_resource<shared_arena<>>;
template class basic_heap<sharing::one_thread>;
template class basic_heap<sharing::any_thread>;

} // namespace mallard
