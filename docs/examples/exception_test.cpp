// A test that makes every allocation of a function fail once.
#include <mallard/debug/exception_test.hpp>

#include <cassert>
#include <memory_resource>
#include <string>
#include <vector>

namespace {

/// The function under test. It appends all names, or throws and leaves `to` as it was.
void append_all(std::pmr::vector<std::pmr::string>& to, std::size_t count)
{
    std::pmr::vector<std::pmr::string> longer(to, to.get_allocator());
    for (std::size_t i = 0; i < count; ++i)
        longer.emplace_back("a name that is longer than what fits into a string");
    to.swap(longer);
}

} // namespace

int main()
{
    std::size_t const points = mallard::for_each_failure([](auto& memory) {
        std::pmr::vector<std::pmr::string> names(&memory); // the test is a memory_resource
        names.emplace_back("the first name, which is on the heap as well");
        try {
            append_all(names, 3);
        } catch (const std::bad_alloc&) {
            assert(names.size() == 1); // `names` has not changed
            throw;
        }
        assert(names.size() == 4);
    });
    assert(points > 5); // the number of allocations, each of which failed once

    // Makes allocations fail without the test: here the third, and every second one after it.
    mallard::failing<mallard::multipool<>> memory({.first = 2, .every = 2});
    void* const first = memory.allocate({8});
    void* const second = memory.allocate({8});
    assert(memory.try_allocate({8}) == nullptr);
    memory.rule() = {}; // no allocation fails
    memory.deallocate(second, {8});
    memory.deallocate(first, {8});
}
