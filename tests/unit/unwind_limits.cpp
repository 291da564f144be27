// Tests walks of call stacks that are corrupt, contain code without an unwind table, or have more
// calls than there is room for.
#include "../support/length.hpp"
#include "unwind.hpp"

#include <random>

#include <pthread.h>
#include <sys/mman.h>

namespace {

using namespace mallard::os;
using namespace mallard::testing;

// Fills a page with return addresses, saved registers and numbers in random order. The pages on
// both sides are unreadable. Each walk must stay in the page, and must end.
TEST(unwind, never_reads_outside_a_corrupt_stack)
{
    constexpr std::size_t words = 512;
    auto* const pages = static_cast<std::uintptr_t*>(
        ::mmap(nullptr, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(pages, MAP_FAILED);
    auto* const page = pages + words;
    ASSERT_EQ(::mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);

    walked w;
    deep(3, [&] { with_aligned_frame(w, 100); });
    stack const real = w.expected;
    std::mt19937 random(1);
    auto const choose = [&]() -> std::uintptr_t {
        switch (random() % 8) {
        case 0:
            return random();
        case 1:
            return reinterpret_cast<std::uintptr_t>(page) + random() % 4096;
        case 2:
        case 3: // also outside of the page
            return reinterpret_cast<std::uintptr_t>(pages + random() % (3 * words));
        default:
            return real[random() % real.size()];
        }
    };
    for (std::size_t round = 0; round < repeated(2000); ++round) {
        std::generate(page, page + words, choose);
        for (int i = 0; i < 20; ++i) {
            auto const sp = reinterpret_cast<std::uintptr_t>(page + random() % (words + 1));
            call_site const from{real[random() % real.size()], sp, choose()};
            w.memory.forget();
            stack_change const change =
                walk(w.memory, from, i % 2 == 0 ? stack_mode::unwound : stack_mode::frame_pointers);
            ASSERT_EQ(change.kept, 0u);
            ASSERT_LE(change.fresh, words + 1);
        }
    }
    ::munmap(pages, 3 * 4096);
}

// Calls `f`. This function has no unwind table.
extern "C" void call_without_table(void (*f)(void*), void* argument);
asm(R"(
    .text
    .type call_without_table, @function
call_without_table:
    sub $8, %rsp
    mov %rdi, %rax
    mov %rsi, %rdi
    call *%rax
    add $8, %rsp
    ret
    .size call_without_table, . - call_without_table
)");

TEST(unwind, stops_at_code_without_an_unwind_table)
{
    walked w;
    auto const look = [](void* argument) {
        auto& self = *static_cast<walked*>(argument);
        for (bool const is_first : {true, false}) {
            self.look();
            EXPECT_TRUE(self.change.cut);
            EXPECT_FALSE(self.change.gap);
            EXPECT_LE(self.memory.depth, 3u); // up to the function without a table
            EXPECT_EQ(self.change.kept > 0, !is_first);
        }
        self.memory.forget();
    };
    call_without_table(look, &w);
    call_without_table(look, &w);
    w.compare(); // the stack is complete again
}

/// Calls `f` on a new thread with a stack of `bytes` bytes.
void on_large_stack(std::size_t bytes, std::function<void()> f)
{
    pthread_attr_t attributes;
    pthread_t thread{};
    ASSERT_EQ(::pthread_attr_init(&attributes), 0);
    ASSERT_EQ(::pthread_attr_setstacksize(&attributes, bytes), 0);
    auto const run = [](void* argument) -> void* {
        (*static_cast<std::function<void()>*>(argument))();
        return nullptr;
    };
    ASSERT_EQ(::pthread_create(&thread, &attributes, run, &f), 0);
    ::pthread_join(thread, nullptr);
    ::pthread_attr_destroy(&attributes);
}

struct recursion {
    walked w;
    unsigned long frames_written = 0;
    unsigned long gaps = 0;
    bool must_be_whole = true;

    void look(int level)
    {
        w.look();
        frames_written += w.change.fresh;
        gaps += w.change.gap ? 1 : 0;
        EXPECT_FALSE(w.change.cut);
        if (must_be_whole) {
            EXPECT_GE(w.memory.depth, static_cast<unsigned>(level));
        }
    }

    // ThreadSanitizer has room for 65,536 nested calls, and this test makes more.
    __attribute__((noinline, no_sanitize("thread"))) void
    enter(int level, int levels) // NOLINT(misc-no-recursion)
    {
        if (level < 20'000 || level % 8 == 0)
            look(level);
        if (level < levels)
            enter(level + 1, levels);
        else
            compare_innermost();
        if (level % 8 == 0)
            look(level);
    }

    void compare_innermost()
    {
        std::vector<void*> calls(70);
        look_twice(calls);
        stack const found = w.found();
        for (std::size_t i = 0; i < 60; ++i)
            ASSERT_EQ(found[i + 2], reinterpret_cast<std::uintptr_t>(calls[i]));
    }

    [[gnu::noinline]] void look_twice(std::vector<void*>& calls)
    {
        calls.resize(walk(calls, caller()));
        w.look();
        EXPECT_FALSE(calls.empty());
    }
};

TEST(unwind, returns_all_frames_of_8000_nested_calls)
{
    on_large_stack(std::size_t{64} << 20, [] {
        recursion r;
        r.enter(1, 8000);
        EXPECT_EQ(r.gaps, 0u);
        EXPECT_LT(r.frames_written, 4u * 8000);
        r.w.compare();
    });
}

TEST(unwind, survives_100000_nested_calls)
{
    on_large_stack(std::size_t{256} << 20, [] {
        recursion r;
        r.must_be_whole = false;
        r.enter(1, 100'000);
        EXPECT_GT(r.gaps, 0u);
        EXPECT_LT(r.gaps, 200u);
        EXPECT_LT(r.frames_written, 1'000'000u);
        r.w.compare();
        EXPECT_LT(r.w.memory.depth, 20u);
    });
}

TEST(unwind, loses_only_frames_for_which_there_is_no_room)
{
    walked w(128);
    deep(1000, [&] {
        w.look();
        EXPECT_TRUE(w.change.gap);
        EXPECT_EQ(w.change.kept, 0u);
        EXPECT_EQ(w.change.fresh, 64u);
        deep(10, [&] { w.look(); });
        EXPECT_FALSE(w.change.gap);
        EXPECT_GT(w.change.kept, 60u);
        deep(100, [&] { w.look(); });
        EXPECT_TRUE(w.change.gap);
    });
    deep(20, [&] { w.compare(); });
}

} // namespace
