// Allocators for code that expects a std::pmr::memory_resource*.
#include <mallard/pmr.hpp>

#include <cassert>
#include <string>
#include <vector>

std::size_t count_words(std::string_view text, std::pmr::memory_resource* memory)
{
    std::pmr::vector<std::pmr::string> words(memory);
    while (!text.empty()) {
        std::size_t const end = std::min(text.find(' '), text.size());
        words.emplace_back(text.substr(0, end)); // the characters are in `memory` too
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return words.size();
}

int main()
{
    mallard::pmr::arena scratch;     // instead of std::pmr::monotonic_buffer_resource
    mallard::pmr::multipool general; // instead of std::pmr::unsynchronized_pool_resource
    assert(count_words("a local allocator", &scratch) == 3);
    assert(count_words("a local allocator", &general) == 3);
    scratch.reset(); // the resource is still an arena

    mallard::pmr_resource<mallard::arena<>> in_the_heap; // an arena<> that is a resource, too
    std::pmr::vector<int> numbers({1, 2, 3}, &in_the_heap);
    assert(in_the_heap.owns(numbers.data()));

    std::byte buffer[1024];
    mallard::pmr::arena in_buffer(buffer, sizeof buffer, std::pmr::null_memory_resource());
    assert(count_words("no heap at all", &in_buffer) == 4);

    using lifo = mallard::pool<mallard::pmr_source,
                               mallard::pool_options{.block = 64, .order = mallard::reuse::lifo}>;
    mallard::pmr_resource<lifo> nodes; // any other allocator, any options
    assert(count_words("one", &nodes) == 1);
}
