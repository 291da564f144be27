// Two processes exchange messages. Each message is a block of a pool in shared memory.
#include <mallard/persist/segment_pool.hpp>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

struct message {
    int number;
    char text[60];
};

/// The object that both processes find in the segment. A mailbox has numbers of blocks and no
/// pointers.
struct mailbox {
    explicit mailbox(mallard::shared_memory& segment) : messages(segment, 100) {}

    /// Waits until the last message was fetched, and posts another.
    void send(std::uint32_t block)
    {
        for (std::uint32_t empty = none; !waiting.compare_exchange_weak(empty, block); empty = none)
            ::sched_yield();
    }
    std::uint32_t receive()
    {
        std::uint32_t block = none;
        while ((block = waiting.exchange(none)) == none)
            ::sched_yield();
        return block;
    }

    static constexpr std::uint32_t none = ~std::uint32_t{0};
    mallard::segment_pool<sizeof(message)> messages;
    std::atomic<std::uint32_t> waiting{none};
};

/// Opens the mailbox, or makes it if the other process has not made it yet. Each process calls this
/// function first.
mailbox& open_mailbox(mallard::shared_memory& segment)
{
    if (segment)
        if (auto* const box = segment.root<mailbox>(segment)) // the first process constructs it
            return *box;
    std::fprintf(stderr, "%s\n", segment.last_failure());
    std::exit(1);
}

int main()
{
    std::string const name = "mallard-example-" + std::to_string(::getpid());

    if (::fork() == 0) { // or any other program
        auto segment = mallard::shared_memory::open_or_create(name, 1 << 16);
        mailbox& box = open_mailbox(segment);
        for (int i = 0; i < 1000; ++i) {
            auto* const m = ::new (box.messages.allocate()) message{i, "hello"};
            box.send(box.messages.number_of(m)); // addresses differ between processes
        }
        return 0;
    }

    auto segment = mallard::shared_memory::open_or_create(name, 1 << 16);
    mailbox& box = open_mailbox(segment);
    for (int i = 0; i < 1000; ++i) {
        auto* const m = static_cast<message*>(box.messages.at(box.receive()));
        assert(m->number == i && std::string(m->text) == "hello");
        box.messages.deallocate(m); // any process frees any block
    }
    static_cast<void>(mallard::shared_memory::remove(name)); // else it stays until the next boot
    int status = 1;
    ::wait(&status);
    assert(status == 0 && box.messages.stats().blocks_live == 0);
}
