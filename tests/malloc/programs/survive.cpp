// Uses malloc like an ordinary program, and survives failing system calls.
//
// survive small|large|threads|all [CALL=ERROR...]
//
// A null result is correct if errno is ENOMEM and nothing else has changed. The program needs no
// C++ runtime, and gets memory only from malloc.
#include "../family.hpp"
#include "check.hpp"
#include "refuse.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include <pthread.h>

namespace {

using namespace mallard::testing;

struct slot {
    void* start;
    std::size_t bytes;
    unsigned seed;
};

class user {
public:
    explicit user(unsigned long seed) : random_(seed) {}

    void work(std::size_t turns, std::size_t bytes_max)
    {
        for (std::size_t i = 0; i < turns; ++i)
            turn(slots_[choose(slots)], 1 + choose(bytes_max));
        for (slot& s : slots_)
            end(s);
        ::malloc_trim(0);
    }

    long blocks() const { return blocks_; }
    long refused() const { return refused_; }

private:
    std::size_t choose(std::size_t end)
    {
        random_ = random_ * 6364136223846793005 + 1442695040888963407;
        return (random_ >> 33) % end;
    }

    void turn(slot& s, std::size_t bytes)
    {
        if (s.start == nullptr)
            begin(s, bytes);
        else if (choose(3) == 0)
            change(s, bytes);
        else
            end(s);
    }

    bool is_given(const void* block)
    {
        ++(block != nullptr ? blocks_ : refused_);
        check(block != nullptr || errno == ENOMEM, "null is for want of memory");
        return block != nullptr;
    }

    void begin(slot& s, std::size_t bytes)
    {
        std::size_t const which = choose(std::size(family));
        errno = 0;
        void* const block = family[which].allocate(bytes);
        if (!is_given(block))
            return;
        check(is_aligned(block, family[which].align), "blocks are aligned");
        bool const clears = std::strncmp(family[which].name, "calloc", 6) == 0;
        check(!clears || is_clear(block, bytes), "calloc clears");
        keep(s, block, bytes);
    }

    void change(slot& s, std::size_t bytes)
    {
        verify(s);
        errno = 0;
        void* const block = std::realloc(s.start, bytes);
        if (!is_given(block))
            return verify(s);
        check(holds(block, std::min<std::size_t>({s.bytes, bytes, 4096}), s.seed), "it is kept");
        keep(s, block, bytes);
    }

    void keep(slot& s, void* block, std::size_t bytes)
    {
        s = {block, bytes, static_cast<unsigned>(blocks_)};
        fill(block, bytes, s.seed);
    }

    void end(slot& s)
    {
        verify(s);
        errno = 4242;
        std::free(s.start);
        check(errno == 4242, "free leaves errno alone");
        s = {};
    }

    static void verify(slot const& s)
    {
        check(s.start == nullptr || holds(s.start, s.bytes, s.seed), "a block keeps its bytes");
    }

    static constexpr std::size_t slots = 300;

    slot slots_[slots] = {};
    unsigned long random_;
    long blocks_ = 0, refused_ = 0;
};

void small(user& u)
{
    u.work(3000, 3000);
    u.work(600, 60'000);
}
void large(user& u)
{
    u.work(30, 1 << 20);
    u.work(8, 40 << 20);
}

void* in_a_thread(void* argument)
{
    static_cast<user*>(argument)->work(800, 10'000);
    return nullptr;
}
void threads(user& u)
{
    // Only four threads: glibc aborts if it has to unmap a stack and munmap fails.
    static user users[] = {user(1), user(2), user(3), user(4)};
    pthread_t started[std::size(users)];
    bool is_started[std::size(users)] = {};
    for (std::size_t i = 0; i < std::size(users); ++i)
        is_started[i] = ::pthread_create(&started[i], nullptr, in_a_thread, &users[i]) == 0;
    u.work(500, 10'000);
    for (std::size_t i = 0; i < std::size(users); ++i)
        if (is_started[i])
            ::pthread_join(started[i], nullptr);
}

struct {
    const char* name;
    void (*run)(user&);
} const scenarios[] = {{"small", small}, {"large", large}, {"threads", threads}};

} // namespace

int main(int count, char** arguments)
{
    static user u(9); // not on the stack, which possibly cannot grow
    bool done = false;
    for (auto const& [name, run] : scenarios)
        if (count > 1 && (std::strcmp(arguments[1], name) == 0 || arguments[1][0] == 'a')) {
            run(u);
            done = true;
        }
    check(done, "a scenario is named: small, large, threads, all");
    std::printf("%ld blocks, %ld refused\n", u.blocks(), u.refused());
}
