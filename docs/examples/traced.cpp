// Writes a trace of the calls of an allocator to a file.
#include <mallard/adapt/traced.hpp>
#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <mallard/trace/trace_reader.hpp>

#include <cassert>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

int main()
{
    const char* const path = "example.trace";
    {
        mallard::trace_file file(path);
        mallard::traced<mallard::multipool<>> orders(file.channel("orders"));
        mallard::traced<mallard::arena<>> scratch(file.channel("scratch"));
        for (std::size_t bytes = 8; bytes <= 4096; bytes *= 2)
            orders.deallocate(orders.allocate({bytes}), {bytes});
        static_cast<void>(scratch.allocate({100}));
        if (!file.close())
            std::puts(file.last_failure()); // the disk is full: ...
    }

    std::ifstream file(path, std::ios::binary);
    std::vector<char> const bytes((std::istreambuf_iterator<char>(file)), {});
    mallard::trace_reader trace(std::as_bytes(std::span(bytes)));
    std::map<std::uint32_t, std::uint64_t> allocated; // bytes, by allocator
    while (auto const event = trace.next())
        if (event->op == mallard_trace_allocate)
            allocated[event->stack] += event->bytes;
    assert(trace.is_whole()); // otherwise trace.remark() says what is missing
    assert(allocated[1] == 8184 && allocated[2] == 100);

    // Calls any callable for each event, here a counter.
    std::size_t events = 0;
    auto count = [&](const mallard_trace_record&) { ++events; };
    mallard::traced<mallard::multipool<>, decltype(count)> counted(count);
    counted.deallocate(counted.allocate({40}), {40});
    assert(events == 2);
    std::remove(path);
}
