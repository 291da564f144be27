#include <mallard/offset_ptr.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

namespace {

using mallard::offset_ptr;

struct base {
    int value = 1;
};
struct derived : base {
    int other = 2;
};

struct node {
    int value = 0;
    offset_ptr<node> next;
};

static_assert(sizeof(offset_ptr<int>) == sizeof(int*));
static_assert(std::is_convertible_v<offset_ptr<derived>, offset_ptr<base>>);
static_assert(std::is_convertible_v<offset_ptr<int>, offset_ptr<const int>>);
static_assert(std::is_convertible_v<offset_ptr<int>, offset_ptr<void>>);
static_assert(!std::is_convertible_v<offset_ptr<const int>, offset_ptr<int>>);
static_assert(!std::is_convertible_v<offset_ptr<base>, offset_ptr<derived>>);
static_assert(!std::is_convertible_v<offset_ptr<int>, bool>);
static_assert(std::is_same_v<std::pointer_traits<offset_ptr<int>>::rebind<char>, offset_ptr<char>>);

TEST(offset_ptr, is_null_until_it_points_somewhere)
{
    offset_ptr<int> p;
    EXPECT_FALSE(p);
    EXPECT_EQ(p, nullptr);
    EXPECT_EQ(p.get(), nullptr);
    int i = 7;
    p = &i;
    EXPECT_TRUE(p);
    EXPECT_EQ(*p, 7);
    p = nullptr;
    EXPECT_FALSE(p);
}

TEST(offset_ptr, points_to_where_it_pointed_however_it_is_copied)
{
    int i = 7;
    offset_ptr<int> const a = &i;
    auto const on_the_heap = std::make_unique<offset_ptr<int>>(a);
    EXPECT_EQ(on_the_heap->get(), &i);
    offset_ptr<int> b;
    b = *on_the_heap;
    EXPECT_EQ(b, a);
    b = *&b;
    EXPECT_EQ(b.get(), &i);
    std::vector<offset_ptr<int>> many;
    for (int k = 0; k < 100; ++k)
        many.push_back(a); // moved about by growth
    EXPECT_TRUE(std::ranges::all_of(many, [&](const auto& p) { return p.get() == &i; }));
}

TEST(offset_ptr, may_point_to_itself)
{
    offset_ptr<void> p;
    p = &p;
    EXPECT_TRUE(p);
    EXPECT_EQ(p.get(), &p);
}

TEST(offset_ptr, stays_right_when_all_around_it_moves)
{
    alignas(node) std::byte there[2 * sizeof(node)];
    auto* const first = ::new (there) node{1, nullptr};
    first->next = ::new (there + sizeof(node)) node{2, nullptr};
    alignas(node) std::byte elsewhere[sizeof there];
    std::memcpy(elsewhere, there, sizeof there);
    std::memset(there, 0, sizeof there);
    auto* const moved = std::launder(reinterpret_cast<node*>(elsewhere));
    EXPECT_EQ(moved->next->value, 2);
    EXPECT_FALSE(moved->next->next);
}

TEST(offset_ptr, converts_as_pointers_do)
{
    derived d;
    offset_ptr<derived> const p = &d;
    offset_ptr<base> const q = p;
    EXPECT_EQ(q->value, 1);
    offset_ptr<const base> const r = q;
    EXPECT_EQ(r.get(), &d);
    offset_ptr<base> const none = offset_ptr<derived>();
    EXPECT_FALSE(none);
}

TEST(offset_ptr, walks_an_array_and_compares)
{
    std::array<int, 5> numbers{0, 1, 2, 3, 4};
    offset_ptr<int> p = numbers.data();
    offset_ptr<int> const end = p + 5;
    EXPECT_EQ(end - p, 5);
    int sum = 0;
    for (offset_ptr<int> i = p; i != end; ++i)
        sum += *i;
    EXPECT_EQ(sum, 10);
    EXPECT_EQ(*p++, 0);
    EXPECT_EQ(*p--, 1);
    EXPECT_EQ(p[3], 3);
    p += 4;
    EXPECT_EQ(*p, 4);
    EXPECT_EQ(*(p - 2), 2);
    --p;
    p -= 1;
    EXPECT_EQ(*(1 + p), 3);
    EXPECT_TRUE(p < end && end > p && p <= p && p != end);
    EXPECT_EQ(offset_ptr<int>::pointer_to(numbers[2]).get(), &numbers[2]);
    EXPECT_EQ(std::to_address(p), &numbers[2]);
}

} // namespace
