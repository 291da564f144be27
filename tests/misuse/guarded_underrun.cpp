// segfaults: so far, so good
#include <mallard/debug/guarded.hpp>
#include <mallard/multipool.hpp>

#include <cstdio>

int main()
{
    constexpr mallard::guarded_options in_front{.side = mallard::guard_at::begin};
    mallard::guarded<mallard::multipool<>, in_front> blocks("orders");
    auto* const block = static_cast<volatile char*>(blocks.allocate({48}));
    block[0] = 1;
    std::puts("so far, so good");
    std::fflush(stdout);
    block[-1] = 1;
}
