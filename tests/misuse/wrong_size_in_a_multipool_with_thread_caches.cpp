// dies: mallard: free of ADDRESS with a size that it was not allocated with
#include <mallard/multipool.hpp>
#include <mallard/sync.hpp>

int main()
{
    using namespace mallard;
    multipool<default_heap, multipool_options{.threads = sync::thread_cached, .checks = check::on}>
        memory;
    memory.deallocate(memory.allocate(100), 100'000); // frees as a large block
}
