// Pools and arenas that several threads use at the same time.
#include <mallard/multipool.hpp>
#include <mallard/pmr.hpp>
#include <mallard/pool.hpp>
#include <mallard/shared_arena.hpp>
#include <mallard/sync.hpp>

#include <cassert>
#include <string>
#include <thread>
#include <vector>

struct message {
    int from;
    char text[60];
};

namespace {

constexpr mallard::pool_options shared{.block = sizeof(message),
                                       .threads = mallard::sync::thread_cached};
constinit mallard::pool<mallard::default_heap, shared> messages; // ready before main

} // namespace

int main()
{
    {
        std::vector<message*> sent;
        std::thread producer([&] {
            for (int i = 0; i < 1000; ++i)
                sent.push_back(::new (messages.allocate()) message{i, "hello"});
        });
        producer.join(); // another thread can take over its cache

        for (message* const m : sent)
            messages.deallocate(m); // any thread frees any block
        messages.trim();            // also returns the caches of other threads
        assert(messages.stats().blocks_live == 0);
    }
    {
        mallard::multipool<mallard::default_heap,
                           mallard::multipool_options{.threads = mallard::sync::thread_cached}>
            memory;
        std::thread([&] { memory.deallocate(memory.allocate({33, 1}), {33, 1}); }).join();
    }
    {
        mallard::pmr::shared_multipool memory; // instead of std::pmr::synchronized_pool_resource
        std::thread([&] {
            std::pmr::string const s("long enough to be allocated", &memory);
        }).join();
    }
    {
        mallard::shared_arena<> request;
        std::thread other([&] { request.own<std::string>("freed with the request"); });
        request.make<message>(1);
        other.join();
        request.reset(); // allowed when no thread uses its blocks any more
    }
}
