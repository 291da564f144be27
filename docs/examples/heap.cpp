// Heaps of Mallard's malloc. Any thread may free their blocks, one by one or all together. A heap
// may have a limit.
#include <mallard/heap.hpp>
#include <mallard/pmr.hpp>

#include <cassert>
#include <cstring>
#include <map>
#include <string>
#include <thread>

int main()
{
    {
        mallard::heap request;
        void* const block = request.allocate(100);
        request.deallocate(block); // or mallard_free(block), or free if Mallard is the malloc
        for (int i = 0; i < 1000; ++i)
            std::memset(request.allocate(200), 0, 200);
        request.release(); // frees all thousand blocks
        assert(request.stats().bytes_taken == 0);
    }
    {
        mallard::heap results;
        auto* const text = static_cast<char*>(results.allocate(6));
        std::strcpy(text, "found");
        std::thread([text] { mallard_free(text); }).join(); // another thread may free it
        assert(results.stats().blocks_live == 0);
    }
    {
        mallard::heap plugin({.limit = std::size_t{16} << 20});
        assert(plugin.try_allocate(std::size_t{20} << 20) == nullptr);
        assert(plugin.stats().bytes_taken == 0);
    }
    {
        mallard::pmr_resource<mallard::shared_heap> memory; // several threads may allocate
        std::pmr::map<int, std::pmr::string> names(&memory);
        names[7] = "a name too long for a string to hold in itself";
        assert(memory.owns(names[7].data()));
    }
}
