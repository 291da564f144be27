// Tests operator new and delete in all their forms.
#include "support.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <new>
#include <vector>

namespace {

using namespace mallard::testing;

constexpr std::align_val_t line{64};
constexpr std::size_t too_many = PTRDIFF_MAX;

struct form {
    const char* name;
    void* (*allocate)(std::size_t bytes);
    void (*deallocate)(void* block, std::size_t bytes);
};

constexpr form throwing[] = {
    {"plain", [](std::size_t n) { return hidden(::operator new(hidden(n))); },
     [](void* p, std::size_t) { ::operator delete(p); }},
    {"array", [](std::size_t n) { return hidden(::operator new[](hidden(n))); },
     [](void* p, std::size_t) { ::operator delete[](p); }},
    {"sized", [](std::size_t n) { return hidden(::operator new(hidden(n))); },
     [](void* p, std::size_t n) { ::operator delete(p, n); }},
    {"sized array", [](std::size_t n) { return hidden(::operator new[](hidden(n))); },
     [](void* p, std::size_t n) { ::operator delete[](p, n); }},
    {"aligned", [](std::size_t n) { return hidden(::operator new(hidden(n), line)); },
     [](void* p, std::size_t) { ::operator delete(p, line); }},
    {"aligned array", [](std::size_t n) { return hidden(::operator new[](hidden(n), line)); },
     [](void* p, std::size_t) { ::operator delete[](p, line); }},
    {"sized aligned", [](std::size_t n) { return hidden(::operator new(hidden(n), line)); },
     [](void* p, std::size_t n) { ::operator delete(p, n, line); }},
    {"sized aligned array", [](std::size_t n) { return hidden(::operator new[](hidden(n), line)); },
     [](void* p, std::size_t n) { ::operator delete[](p, n, line); }},
};
constexpr form nothrow[] = {
    {"plain", [](std::size_t n) { return hidden(::operator new(hidden(n), std::nothrow)); },
     [](void* p, std::size_t) { ::operator delete(p, std::nothrow); }},
    {"array", [](std::size_t n) { return hidden(::operator new[](hidden(n), std::nothrow)); },
     [](void* p, std::size_t) { ::operator delete[](p, std::nothrow); }},
    {"aligned", [](std::size_t n) { return hidden(::operator new(hidden(n), line, std::nothrow)); },
     [](void* p, std::size_t) { ::operator delete(p, line, std::nothrow); }},
    {"aligned array",
     [](std::size_t n) { return hidden(::operator new[](hidden(n), line, std::nothrow)); },
     [](void* p, std::size_t) { ::operator delete[](p, line, std::nothrow); }},
};

void try_form(form const& f)
{
    bool const aligned = std::string(f.name).find("aligned") != std::string::npos;
    for (std::size_t bytes = 0; bytes < std::size_t{40} << 20; bytes = bytes * 2 + 1) {
        void* const block = f.allocate(bytes);
        ASSERT_NE(block, nullptr) << f.name;
        EXPECT_TRUE(is_aligned(block, aligned ? 64 : 16)) << f.name << " of " << bytes;
        fill(block, bytes, 1);
        EXPECT_TRUE(holds(block, bytes, 1)) << f.name << " of " << bytes;
        f.deallocate(block, bytes);
    }
    f.deallocate(nullptr, 0);
}

TEST(operator_new, every_form_of_operator_new_works_with_the_matching_delete)
{
    for (form const& f : throwing)
        try_form(f);
    for (form const& f : nothrow)
        try_form(f);
}

TEST(operator_new, aligns_overaligned_types)
{
    struct alignas(8192) page {
        char bytes[100];
    };
    for (int i = 0; i < 10; ++i) {
        auto const one = std::make_unique<page>();
        auto const many = std::make_unique<page[]>(3);
        EXPECT_TRUE(is_aligned(hidden(one.get()), 8192));
        EXPECT_TRUE(is_aligned(hidden(many.get()), 8192));
    }
}

TEST(operator_new, throws_or_returns_null_for_too_many_bytes)
{
    std::vector<std::size_t> sizes{too_many, too_many + 1, SIZE_MAX - 4096};
    if (is_preloaded()) // the aligned forms of libstdc++ 12 round this size up to 0
        sizes.push_back(SIZE_MAX);
    for (std::size_t const bytes : sizes) {
        for (form const& f : throwing)
            EXPECT_THROW(f.allocate(bytes), std::bad_alloc) << f.name;
        for (form const& f : nothrow)
            EXPECT_EQ(f.allocate(bytes), nullptr) << f.name;
    }
    EXPECT_THROW(std::vector<int>(hidden(too_many / 4)), std::bad_alloc);
    EXPECT_THROW(hidden(new char[hidden(SIZE_MAX)]), std::bad_alloc);
}

/// Sets a new_handler during its scope.
class handler {
public:
    explicit handler(std::function<void()> f)
    {
        function_ = std::move(f);
        std::set_new_handler([] { function_(); });
    }
    ~handler() { std::set_new_handler(nullptr); }
    handler(const handler&) = delete;
    handler& operator=(const handler&) = delete;

private:
    static inline std::function<void()> function_;
};

TEST(operator_new, calls_the_new_handler_until_none_is_set)
{
    int calls = 0;
    handler const gives_up([&] {
        if (++calls == 5)
            std::set_new_handler(nullptr);
    });
    EXPECT_THROW(hidden(::operator new(hidden(too_many))), std::bad_alloc);
    EXPECT_EQ(calls, 5);
}

TEST(operator_new, calls_the_new_handler_in_every_form_and_propagates_its_exceptions)
{
    int calls = 0;
    handler const throws_int([&] {
        if (++calls % 3 == 0)
            throw 7;
    });
    for (form const& f : throwing)
        EXPECT_THROW(f.allocate(too_many), int) << f.name;
    EXPECT_EQ(calls, 3 * static_cast<int>(std::size(throwing)));
}

TEST(operator_new, nothrow_calls_the_new_handler_and_catches_its_bad_alloc)
{
    int calls = 0;
    handler const throws([&] {
        if (++calls % 3 == 0)
            throw std::bad_alloc();
    });
    for (form const& f : nothrow)
        EXPECT_EQ(f.allocate(too_many), nullptr) << f.name;
    EXPECT_EQ(calls, 3 * static_cast<int>(std::size(nothrow)));
}

TEST(operator_new, calls_a_new_handler_that_may_allocate)
{
    handler const allocates([] {
        delete hidden(new int(5));
        std::set_new_handler(nullptr);
    });
    EXPECT_THROW(hidden(::operator new(hidden(too_many))), std::bad_alloc);
}

TEST(operator_new, works_after_a_throw)
{
    for (int i = 0; i < 1000; ++i) {
        EXPECT_THROW(hidden(::operator new(hidden(SIZE_MAX))), std::bad_alloc);
        delete[] hidden(new char[1000]);
    }
}

TEST(operator_delete, operator_delete_and_free_accept_each_others_blocks)
{
    std::free(hidden(::operator new(100)));
    ::operator delete(hidden(std::malloc(100)));
    ::operator delete(hidden(::aligned_alloc(64, 128)), line);
    ::operator delete(hidden(::operator new(100, line)));
    std::free(hidden(std::realloc(hidden(::operator new(100)), 5000)));
}

} // namespace
