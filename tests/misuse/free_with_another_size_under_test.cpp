// dies: mallard: blocks were freed with incorrect sizes when no allocation failed
#include <mallard/debug/exception_test.hpp>

int main()
{
    mallard::for_each_failure([](auto& memory) {
        void* const block = memory.allocate({48, 16});
        memory.deallocate(block, {44, 16}); // has the same size class
    });
}
