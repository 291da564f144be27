// A shared object with a static pool is unloaded only when the last thread that used the pool has
// exited.
#include "../support/threads.hpp"

#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include <dlfcn.h>

namespace {

using namespace mallard::testing;

class module {
public:
    module()
    {
        EXPECT_NE(handle_, nullptr) << ::dlerror();
        find("module_allocate", allocate);
        find("module_deallocate", deallocate);
        find("module_blocks_live", blocks_live);
    }
    ~module() { ::dlclose(handle_); }
    module(const module&) = delete;
    module& operator=(const module&) = delete;

    static bool is_loaded()
    {
        void* const handle = ::dlopen(STATIC_POOL_MODULE, RTLD_NOW | RTLD_NOLOAD);
        return handle != nullptr && ::dlclose(handle) == 0;
    }

    void* (*allocate)();
    void (*deallocate)(void*);
    std::size_t (*blocks_live)();

private:
    template <class F>
    void find(const char* name, F*& function)
    {
        function = reinterpret_cast<F*>(::dlsym(handle_, name));
    }

    void* const handle_ = ::dlopen(STATIC_POOL_MODULE, RTLD_NOW);
};

/// Lets each thread free blocks that another thread allocated. 30 blocks stay in use.
void use(module& m, std::array<puppet, 3>& threads)
{
    std::array<std::vector<void*>, 3> blocks;
    // The number of blocks from an earlier use. It is not 0 if a thread has kept the module loaded.
    std::size_t before = 0;
    threads[0]([&] { before = m.blocks_live(); });
    for (std::size_t i = 0; i < threads.size(); ++i)
        threads[i]([&] {
            blocks[i].resize(300);
            for (void*& block : blocks[i])
                block = m.allocate();
        });
    for (std::size_t i = 0; i < threads.size(); ++i)
        threads[i]([&] {
            auto& others = blocks[(i + 1) % 3];
            for (; others.size() > 10; others.pop_back())
                m.deallocate(others.back());
        });
    threads[0]([&] { EXPECT_EQ(m.blocks_live(), before + 30); });
}

TEST(a_module_with_a_pool, is_unloaded_after_its_threads_have_exited)
{
    for (std::size_t round = 0; round < rounds(100); ++round) {
        {
            module m;
            std::array<puppet, 3> threads;
            use(m, threads);
        }
        EXPECT_FALSE(module::is_loaded());
    }
}

TEST(a_module_with_a_pool, stays_loaded_while_a_thread_that_used_it_lives)
{
    for (std::size_t round = 0; round < rounds(100); ++round) {
        {
            std::array<puppet, 3> threads;
            auto m = std::make_unique<module>();
            use(*m, threads);
            m.reset();
            EXPECT_TRUE(module::is_loaded());
        }
        module const again; // a second handle, so that closing it unloads the module
    }
    EXPECT_FALSE(module::is_loaded());
}

TEST(a_module_with_a_pool, works_with_threads_that_also_use_pools_of_the_program)
{
    auto const own = std::make_unique<mallard::pool<
        mallard::default_heap, mallard::pool_options{.threads = mallard::sync::thread_cached}>>(64);
    std::array<puppet, 3> threads;
    for (std::size_t round = 0; round < rounds(100); ++round) {
        std::vector<void*> blocks;
        threads[round % 3]([&] { blocks.push_back(own->allocate()); });
        {
            module m;
            std::array<puppet, 3> others;
            use(m, round % 2 == 0 ? threads : others);
            others[0]([&] { blocks.push_back(own->allocate()); });
        }
        threads[(round + 1) % 3]([&] { own->deallocate_batch(blocks); });
    }
    EXPECT_EQ(own->stats().blocks_live, 0U);
}

} // namespace
