// The trap caches, in which every fast path of malloc and free fails (see thread_cache.hpp).
#include "thread_cache.hpp"

#include "../os/relocation.hpp"

namespace mallard::engine {

constinit thread_cache empty_thread_cache;
constinit thread_cache exited_thread_cache;
constinit thread_cache visited_thread_cache;
constinit thread_cache watching_thread_cache;
constinit thread_local shown_caches my_caches{&empty_thread_cache, &empty_thread_cache};

void tag_decoy_caches() noexcept
{
    for (thread_cache* const decoy :
         {&empty_thread_cache, &exited_thread_cache, &visited_thread_cache, &watching_thread_cache})
        decoy->tag = decoy_tag;
}

} // namespace mallard::engine

namespace mallard::os {

// Makes the first thread use the fallback cache until the loader has copied the initial values of
// `my_caches`. If the thread had a cache before that, the copy would overwrite the pointer to the
// cache.
void on_relocation() noexcept
{
    engine::my_caches.show(engine::exited_thread_cache);
}

} // namespace mallard::os
