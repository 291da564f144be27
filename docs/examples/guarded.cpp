// Stops a program at the instruction that accesses bytes outside a block.
#include <mallard/debug/guarded.hpp>
#include <mallard/multipool.hpp>

#include <cassert>
#include <csignal>

#include <unistd.h>

constexpr mallard::guarded_options one_in_a_thousand{.one_in = 1000};

auto survive = [](const mallard::fault& f) {
    ::_exit(f.kind == mallard::fault_kind::touch_after_free ? 0 : 1);
};
mallard::guarded<mallard::multipool<>> orders({"orders", survive});

void explain(int, siginfo_t* what, void*)
{
    if (!orders.explain(what->si_addr)) // calls `survive`; the default prints and aborts
        ::_exit(1);
}

int main()
{
    mallard::guarded<mallard::multipool<>, one_in_a_thousand> sessions("sessions");
    for (int i = 0; i < 10'000; ++i)
        static_cast<void>(sessions.allocate({64}));
    assert(sessions.blocks() < 100 && sessions.unguarded() == 0);

    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = explain;
    ::sigaction(SIGSEGV, &action, nullptr);

    auto* const block = static_cast<volatile char*>(orders.allocate({48}));
    block[47] = 1;
    orders.deallocate(const_cast<char*>(block), {48});
    block[47] = 2; // this raises a segmentation fault
    return 1;
}
