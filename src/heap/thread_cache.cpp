// The decoy caches: see thread_cache.hpp.
#include "thread_cache.hpp"

namespace mallard::engine {

constinit thread_cache empty_thread_cache;
constinit thread_cache exited_thread_cache;
constinit thread_cache visited_thread_cache;
constinit thread_local std::atomic<thread_cache*> my_cache{&empty_thread_cache};

void tag_decoy_caches() noexcept
{
    for (thread_cache* const decoy :
         {&empty_thread_cache, &exited_thread_cache, &visited_thread_cache})
        decoy->tag = decoy_tag;
}

} // namespace mallard::engine
