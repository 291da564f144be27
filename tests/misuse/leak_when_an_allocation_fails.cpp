// dies: mallard: 1 block leaked when allocation 1 failed
#include <mallard/debug/exception_test.hpp>

int main()
{
    mallard::for_each_failure([](auto& memory) {
        void* const first = memory.allocate({48, 16});
        void* const second =
            memory.allocate({48, 16}); // if this throws, the first block is never freed
        memory.deallocate(second, {48, 16});
        memory.deallocate(first, {48, 16});
    });
}
