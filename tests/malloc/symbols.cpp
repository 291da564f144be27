// Tests that every function of the malloc family exists and works, and that all are in the same
// library.
#include "support.hpp"

#include <gtest/gtest.h>

#include <new>
#include <string>

namespace {

using namespace mallard::testing;
using std::size_t;

struct symbol {
    const char* name;
    void (*use)(const char* name);
};

constexpr std::align_val_t line{64};

void expect_block(void* block, size_t bytes, size_t align)
{
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(is_aligned(block, align));
    EXPECT_GE(::malloc_usable_size(block), bytes);
    fill(block, bytes, 1);
    std::free(block);
}
void* some_block()
{
    void* const block = ::memalign(64, 128);
    fill(block, 128, 2);
    return block;
}

void allocates(const char* name)
{
    expect_block(find<void*(size_t)>(name)(100), 100, 16);
}
void allocates_pages(const char* name)
{
    expect_block(find<void*(size_t)>(name)(100), 100, 4096);
}
void allocates_aligned(const char* name)
{
    expect_block(find<void*(size_t, size_t)>(name)(64, 128), 128, 64);
}
void allocates_many(const char* name)
{
    expect_block(find<void*(size_t, size_t)>(name)(10, 50), 500, 16);
}
void reallocates(const char* name)
{
    void* const block = find<void*(void*, size_t)>(name)(some_block(), 5000);
    EXPECT_TRUE(holds(block, 128, 2));
    expect_block(block, 5000, 16);
}
void news(const char* name)
{
    expect_block(find<void*(size_t, const std::nothrow_t&)>(name)(100, std::nothrow), 100, 16);
}
void news_aligned(const char* name)
{
    expect_block(find<void*(size_t, std::align_val_t)>(name)(100, line), 100, 64);
}
void news_aligned_or_not(const char* name)
{
    expect_block(
        find<void*(size_t, std::align_val_t, const std::nothrow_t&)>(name)(100, line, std::nothrow),
        100, 64);
}

void frees(const char* name)
{
    find<void(void*)>(name)(some_block());
    find<void(void*)>(name)(nullptr);
}
void frees_sized(const char* name)
{
    find<void(void*, size_t)>(name)(some_block(), 128);
    find<void(void*, size_t)>(name)(nullptr, 128);
}
void frees_size_after_align(const char* name)
{
    find<void(void*, size_t, size_t)>(name)(some_block(), 64, 128);
    find<void(void*, size_t, size_t)>(name)(nullptr, 64, 128);
}
void deletes(const char* name)
{
    find<void(void*, const std::nothrow_t&)>(name)(some_block(), std::nothrow);
}
void deletes_aligned(const char* name)
{
    find<void(void*, std::align_val_t)>(name)(some_block(), line);
}
void deletes_aligned_or_not(const char* name)
{
    find<void(void*, std::align_val_t, const std::nothrow_t&)>(name)(some_block(), line,
                                                                     std::nothrow);
}
void deletes_align_after_size(const char* name)
{
    find<void(void*, size_t, std::align_val_t)>(name)(some_block(), 128, line);
}

constexpr symbol symbols[] = {
    {"malloc", allocates},
    {"calloc", allocates_many},
    {"realloc", reallocates},
    {"reallocarray",
     [](const char* name) {
         expect_block(find<void*(void*, size_t, size_t)>(name)(some_block(), 10, 50), 500, 16);
     }},
    {"free", frees},
    {"cfree", frees},
    {"free_sized", frees_sized},
    {"free_aligned_sized", frees_size_after_align},
    {"aligned_alloc", allocates_aligned},
    {"memalign", allocates_aligned},
    {"posix_memalign",
     [](const char* name) {
         void* block = nullptr;
         EXPECT_EQ((find<int(void**, size_t, size_t)>(name)(&block, 64, 100)), 0);
         expect_block(block, 100, 64);
     }},
    {"valloc", allocates_pages},
    {"pvalloc", [](const char* name) { expect_block(find<void*(size_t)>(name)(100), 4096, 4096); }},
    {"malloc_usable_size",
     [](const char* name) {
         void* const block = some_block();
         EXPECT_GE(find<size_t(void*)>(name)(block), 128);
         std::free(block);
     }},
    {"malloc_trim", [](const char* name) { EXPECT_LE(unsigned(find<int(size_t)>(name)(0)), 1); }},
    {"mallopt",
     [](const char* name) { EXPECT_EQ((find<int(int, int)>(name)(M_MMAP_MAX, 65536)), 1); }},
    {"mallinfo", [](const char* name) { EXPECT_GE(find<struct mallinfo()>(name)().uordblks, 0); }},
    {"mallinfo2",
     [](const char* name) { EXPECT_GT(find<struct mallinfo2()>(name)().uordblks, 0); }},
    {"malloc_stats", [](const char* name) { find<void()>(name)(); }},
    {"malloc_info",
     [](const char* name) { EXPECT_EQ((find<int(int, std::FILE*)>(name)(0, stdout)), 0); }},
    {"__libc_malloc", allocates},
    {"__libc_calloc", allocates_many},
    {"__libc_realloc", reallocates},
    {"__libc_free", frees},
    {"__libc_memalign", allocates_aligned},
    {"__libc_valloc", allocates_pages},
    {"__libc_pvalloc", allocates_pages},
    {"_Znwm", allocates},
    {"_Znam", allocates},
    {"_ZnwmRKSt9nothrow_t", news},
    {"_ZnamRKSt9nothrow_t", news},
    {"_ZnwmSt11align_val_t", news_aligned},
    {"_ZnamSt11align_val_t", news_aligned},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", news_aligned_or_not},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", news_aligned_or_not},
    {"_ZdlPv", frees},
    {"_ZdaPv", frees},
    {"_ZdlPvm", frees_sized},
    {"_ZdaPvm", frees_sized},
    {"_ZdlPvRKSt9nothrow_t", deletes},
    {"_ZdaPvRKSt9nothrow_t", deletes},
    {"_ZdlPvSt11align_val_t", deletes_aligned},
    {"_ZdaPvSt11align_val_t", deletes_aligned},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t", deletes_aligned_or_not},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t", deletes_aligned_or_not},
    {"_ZdlPvmSt11align_val_t", deletes_align_after_size},
    {"_ZdaPvmSt11align_val_t", deletes_align_after_size},
};

class use_of : public ::testing::Test {
public:
    explicit use_of(symbol const& what) : what_(what) {}

    void TestBody() override
    {
        std::string const file = file_of(what_.name);
        if (is_preloaded()) {
            ASSERT_EQ(file, file_of("malloc"));
        } else if (file.empty()) {
            GTEST_SKIP() << "not in this glibc";
        }
        what_.use(what_.name);
    }

private:
    symbol const what_;
};

/// Registers a test for each function.
const bool registered = [] {
    for (symbol const& one : symbols)
        ::testing::RegisterTest("is_of_the_same_library_and_works", one.name, nullptr, nullptr,
                                __FILE__, __LINE__,
                                [one]() -> ::testing::Test* { return new use_of(one); });
    return true;
}();

} // namespace
