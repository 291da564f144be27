// segfaults: so far, so good
#include <mallard/debug/guarded.hpp>
#include <mallard/multipool.hpp>

#include <cstdio>

int main()
{
    mallard::guarded<mallard::multipool<>> blocks("orders");
    auto* const block = static_cast<volatile char*>(blocks.allocate({48}));
    block[47] = 1;
    std::puts("so far, so good");
    std::fflush(stdout);
    block[48] = 1;
}
