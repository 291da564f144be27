// Tests that the walk of call stacks finds the same frames as the exception unwinder of the C++
// runtime, which reads the same unwind tables.
#include "unwind.hpp"

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <alloca.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unwind.h>

namespace {

using namespace mallard::os;
using namespace mallard::testing;

TEST(unwind, finds_the_same_stack_as_the_exception_unwinder)
{
    walked w;
    w.compare();
    EXPECT_EQ(w.change.kept, 0u);
    deep(20, [&] { w.compare(); });
    deep(10, [&] { w.compare(); });
}

TEST(unwind, returns_only_the_frames_that_changed_since_the_last_call)
{
    walked w;
    deep(50, [&] {
        w.compare();
        EXPECT_GT(w.change.fresh, 50u);
        auto const frames = w.memory.depth;
        for (int i = 0; i < 2; ++i) {
            w.compare(); // the first time, the return address of this call is new
            EXPECT_EQ(w.memory.depth, frames);
            EXPECT_EQ(w.change.fresh, i == 0 ? 1u : 0u);
        }
        deep(5, [&] { w.compare(); });
        EXPECT_LT(w.change.fresh, 20u);
        EXPECT_EQ(w.change.kept + w.change.fresh, w.memory.depth);
    });
}

TEST(unwind, returns_all_frames_after_forget)
{
    walked w;
    w.compare();
    w.memory.forget();
    w.compare();
    EXPECT_EQ(w.change.kept, 0u);
}

/// Walks the stack without remembering the last stack, starting at the calling function.
[[gnu::noinline]] void look_once(walked& w, std::vector<void*>& calls)
{
    calls.resize(walk(calls, caller()));
    w.compare();
    EXPECT_FALSE(calls.empty()); // keeps `compare` from being a tail call
}

TEST(unwind, without_memory_skips_the_frame_of_the_calling_function)
{
    walked w;
    std::vector<void*> calls(100);
    look_once(w, calls);
    // The first frame of `compare` is `look_once`, the second is this function.
    ASSERT_GT(w.expected.size(), 2u);
    ASSERT_EQ(calls.size() + 2, w.expected.size());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(calls[0]), w.expected[2]);
}

TEST(unwind, works_while_exceptions_are_in_flight)
{
    walked w;
    struct compares_at_the_end {
        walked& w;
        ~compares_at_the_end() { w.compare(); }
    };
    for (int depth : {0, 3, 30}) {
        try {
            deep(depth, [&] {
                compares_at_the_end const last{w};
                w.compare();
                throw std::runtime_error("thrown");
            });
        } catch (std::runtime_error const&) {
            w.compare();
        }
        w.compare();
    }
}

TEST(unwind, works_after_longjmp)
{
    walked w;
    for (int const depth : {0, 10, 20, 5}) {
        jmp_buf back;
        if (setjmp(back) == 0)
            deep(depth, [&] {
                w.compare();
                std::longjmp(back, 1);
            });
        w.compare();
    }
}

[[gnu::noinline]] void with_alloca(walked& w, std::size_t bytes)
{
    std::memset(alloca(bytes), 1, bytes);
    w.compare();
}

TEST(unwind, handles_frames_of_any_size_and_alignment)
{
    walked w;
    for (std::size_t bytes : {16u, 48u, 1000u, 100'000u}) {
        with_alloca(w, bytes);
        with_aligned_frame(w, bytes);
    }
}

[[gnu::noinline]] void with_large_frame(walked& w)
{
    char volatile large[3 << 20];
    large[0] = 1;
    w.compare();
    large[1] = large[0];
}

TEST(unwind, handles_frames_of_several_mebibytes)
{
    walked w;
    with_large_frame(w);
}

walked* of_handler = nullptr;

void handle(int)
{
    of_handler->compare();
    of_handler->compare();
}

void raise_at(int depth)
{
    deep(depth, [] {
        of_handler->compare();
        ::raise(SIGUSR1);
        of_handler->compare();
    });
}

void handle_signals_with(int flags)
{
    walked w;
    of_handler = &w;
    struct sigaction action{};
    struct sigaction before{};
    action.sa_handler = handle;
    action.sa_flags = flags;
    ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
    for (int depth : {0, 10, 5, 6})
        raise_at(depth);
    ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST(unwind, walks_through_signal_frames)
{
    handle_signals_with(0);
}

TEST(unwind, walks_through_signal_frames_on_an_alternate_stack)
{
    std::vector<char> memory(1 << 18);
    stack_t alternate{};
    stack_t before{};
    alternate.ss_sp = memory.data();
    alternate.ss_size = memory.size();
    ASSERT_EQ(::sigaltstack(&alternate, &before), 0);
    handle_signals_with(SA_ONSTACK);
    ASSERT_EQ(::sigaltstack(&before, nullptr), 0);
}

struct fiber {
    ucontext_t own{};
    ucontext_t main{};
    walked* w = nullptr;
    char* stack = nullptr;
    static constexpr std::size_t bytes = 1 << 18;

    static fiber* now;

    static void run()
    {
        fiber& self = *now;
        for (int i = 0; i < 3; ++i) {
            // The walk ends at glibc's function that starts a fiber, because it has no unwind
            // table.
            deep(5 * i, [&] { self.w->compare(true); });
            EXPECT_EQ(self.w->change.kept, 0u);
            ::swapcontext(&self.own, &self.main);
        }
    }
};

fiber* fiber::now = nullptr;

TEST(unwind, walks_stacks_of_fibers_completely)
{
    walked w;
    fiber fibers[2];
    for (fiber& f : fibers) {
        // An unreadable page follows the stack.
        f.stack = static_cast<char*>(::mmap(nullptr, fiber::bytes + 4096, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        ASSERT_NE(f.stack, MAP_FAILED);
        ASSERT_EQ(::mprotect(f.stack + fiber::bytes, 4096, PROT_NONE), 0);
        f.w = &w;
        ASSERT_EQ(::getcontext(&f.own), 0);
        f.own.uc_stack.ss_sp = f.stack;
        f.own.uc_stack.ss_size = fiber::bytes;
        f.own.uc_link = &f.main;
        ::makecontext(&f.own, fiber::run, 0);
    }
    for (int i = 0; i < 6; ++i) {
        fiber::now = &fibers[i % 2];
        ::swapcontext(&fibers[i % 2].main, &fibers[i % 2].own);
        w.compare();
        w.compare();
        EXPECT_EQ(w.change.fresh, 1u);
    }
    for (fiber& f : fibers)
        ::munmap(f.stack, fiber::bytes + 4096);
}

TEST(unwind, caches_the_stack_of_each_thread_separately)
{
    std::thread([] {
        walked w;
        deep(100, [&] {
            w.compare();
            w.compare();
            EXPECT_EQ(w.change.fresh, 1u);
        });
        std::thread([] { walked().compare(); }).join();
        w.compare();
        EXPECT_GT(w.change.kept, 0u);
    }).join();
}

TEST(unwind, follows_frame_pointers)
{
    walked w;
    // The memory holds three frames. Each frame is a pair: the caller's frame pointer, and the
    // return address.
    std::uintptr_t frames[6] = {0, 30, 0, 20, 0, 10};
    auto const at = [&](int i) { return reinterpret_cast<std::uintptr_t>(frames + i); };
    frames[0] = at(2);
    frames[2] = at(4);
    call_site const from{40, at(0), at(0)};
    w.read(walk(w.memory, from, stack_mode::frame_pointers));
    EXPECT_EQ(w.reader, (stack{10, 20, 30, 40}));
    EXPECT_FALSE(w.change.cut);

    frames[1] = 31;
    w.read(walk(w.memory, from, stack_mode::frame_pointers));
    EXPECT_EQ(w.change.kept, 2u);
    EXPECT_EQ(w.reader, (stack{10, 20, 31, 40}));

    for (std::uintptr_t const damaged : {at(0), std::uintptr_t{8}, at(3) + 1}) {
        frames[2] = damaged;
        w.memory.forget();
        w.reader.clear();
        w.read(walk(w.memory, from, stack_mode::frame_pointers));
        EXPECT_EQ(w.reader, (stack{20, 31, 40}));
        EXPECT_TRUE(w.change.cut);
    }
}

TEST(unwind, can_find_only_the_direct_caller)
{
    walked w;
    for (unsigned i = 0; i < 2; ++i) {
        w.look(stack_mode::caller);
        EXPECT_EQ(w.change.kept, i);
        EXPECT_EQ(w.change.fresh, 1 - i);
        EXPECT_EQ(w.memory.depth, 1u);
    }
}

/// A module with the function `call_back`. The size of its frame differs from module to module.
struct test_module {
    void* handle;
    void (*call_back)(void (*)(void*), void*);

    explicit test_module(char const* path)
        : handle(::dlopen(path, RTLD_NOW | RTLD_LOCAL)),
          call_back(reinterpret_cast<decltype(call_back)>(::dlsym(handle, "call_back")))
    {
    }
    test_module(test_module const&) = delete;
    ~test_module() { ::dlclose(handle); }
};

std::vector<std::string> reported;

TEST(unwind, reads_the_unwind_tables_again_after_dlclose)
{
    on_new_module([](code_module const& module) noexcept {
        EXPECT_LT(module.begin, module.end);
        reported.emplace_back(module.path);
    });
    walked w;
    auto const look = [](void* argument) { static_cast<walked*>(argument)->compare(); };
    std::vector<std::uintptr_t> places;
    for (char const* path : {UNWIND_MODULE_A, UNWIND_MODULE_B, UNWIND_MODULE_A}) {
        {
            reported.clear();
            test_module const module(path);
            ASSERT_NE(module.call_back, nullptr);
            places.push_back(reinterpret_cast<std::uintptr_t>(module.call_back));
            module.call_back(look, &w);
            EXPECT_EQ(std::count(reported.begin(), reported.end(), path), 1);
            reported.clear();
            module.call_back(look, &w);
            EXPECT_TRUE(reported.empty());
        }
        forget_code();
    }
    on_new_module(nullptr);
    EXPECT_EQ(places[0], places[1]) << "the modules were not loaded at the same address";
}

} // namespace
