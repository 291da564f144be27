// dies: mallard: use of ADDRESS, which is in a freed block of "orders"
#include <mallard/debug/guarded.hpp>
#include <mallard/multipool.hpp>

#include <csignal>

namespace {

constexpr mallard::guarded_options calls{.frames = 6};
mallard::guarded<mallard::multipool<>, calls>* explained;

void explain(int, siginfo_t* what, void*)
{
    explained->explain(what->si_addr);
}

} // namespace

int main()
{
    mallard::guarded<mallard::multipool<>, calls> blocks("orders");
    explained = &blocks;
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = explain;
    ::sigaction(SIGSEGV, &action, nullptr);
    auto* const block = static_cast<volatile char*>(blocks.allocate({48}));
    blocks.deallocate(const_cast<char*>(block), {48});
    return block[8];
}
