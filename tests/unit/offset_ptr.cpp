#include <mallard/persist/offset_ptr.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace {

using mallard::offset_ptr;

struct base {
    int value = 0;
};
struct derived : base {
    int more = 0;
};

struct node {
    int key = 0;
    offset_ptr<node> next;
};

TEST(offset_ptr, is_null_by_default_and_compares_like_the_assigned_pointer)
{
    int number = 7;
    offset_ptr<int> p;
    EXPECT_FALSE(p);
    EXPECT_EQ(p, nullptr);
    EXPECT_EQ(p.get(), nullptr);
    p = &number;
    EXPECT_TRUE(p);
    EXPECT_EQ(*p, 7);
    EXPECT_EQ(p.get(), &number);
    p = nullptr;
    EXPECT_FALSE(p);
}

TEST(offset_ptr, stays_valid_when_it_moves_together_with_its_target)
{
    node list[3];
    list[0] = {1, &list[1]};
    list[1] = {2, &list[2]};
    list[2] = {3, &list[0]};
    alignas(node) std::byte elsewhere[sizeof list];
    std::memcpy(elsewhere, static_cast<void*>(list), sizeof list);
    auto* const moved = reinterpret_cast<node*>(elsewhere);
    EXPECT_EQ(moved[0].next.get(), &moved[1]);
    EXPECT_EQ(moved->next->next->key, 3);
    EXPECT_EQ(moved->next->next->next.get(), moved);
}

TEST(offset_ptr, points_to_the_same_target_after_a_copy)
{
    int number = 1;
    offset_ptr<int> const a = &number;
    auto const b = std::make_unique<offset_ptr<int>>(a);
    offset_ptr<int> c;
    c = *b;
    EXPECT_EQ(c.get(), &number);
    EXPECT_EQ(a, c);
    offset_ptr<int> empty;
    c = empty;
    EXPECT_EQ(c, nullptr);
}

TEST(offset_ptr, can_point_to_itself)
{
    struct ring {
        offset_ptr<ring> next;
    } alone;
    alone.next = &alone;
    EXPECT_TRUE(alone.next);
    EXPECT_EQ(alone.next.get(), &alone);
}

TEST(offset_ptr, iterates_over_an_array)
{
    int numbers[] = {0, 10, 20, 30};
    offset_ptr<int> p = numbers;
    EXPECT_EQ(*++p, 10);
    EXPECT_EQ(*p++, 10);
    EXPECT_EQ(*p, 20);
    EXPECT_EQ(p[1], 30);
    EXPECT_EQ(p - offset_ptr<int>(numbers), 2);
    EXPECT_EQ(*(p - 2), 0);
    EXPECT_EQ(*(1 + p), 30);
    EXPECT_EQ(*--p, 10);
    EXPECT_EQ(*p--, 10);
    EXPECT_LT(p, p + 1);
    EXPECT_GE(p + 1, p);
    EXPECT_EQ((p + 4 - 4).get(), numbers);
}

TEST(offset_ptr, converts_as_pointers_do)
{
    derived object;
    offset_ptr<derived> const d = &object;
    offset_ptr<base> const b = d;
    offset_ptr<const base> const c = b;
    offset_ptr<void> const v = d;
    EXPECT_EQ(b.get(), &object);
    EXPECT_EQ(c.get(), &object);
    EXPECT_EQ(v.get(), &object);
    EXPECT_EQ(static_cast<offset_ptr<derived>>(v), d);
    EXPECT_EQ(static_cast<offset_ptr<derived>>(b), d);
    static_assert(!std::is_convertible_v<offset_ptr<base>, offset_ptr<derived>>);
    static_assert(!std::is_convertible_v<offset_ptr<const int>, offset_ptr<int>>);
    static_assert(!std::is_trivially_copyable_v<offset_ptr<int>>);
    EXPECT_EQ(std::to_address(d), &object);
}

/// A standard allocator over the heap with fancy pointers.
template <class T>
struct fancy {
    using value_type = T;
    using pointer = offset_ptr<T>;

    fancy() = default;
    template <class U>
    fancy(const fancy<U>&)
    {
    }
    pointer allocate(std::size_t n) { return std::allocator<T>().allocate(n); }
    void deallocate(pointer p, std::size_t n) { std::allocator<T>().deallocate(p.get(), n); }
    friend bool operator==(fancy, fancy) { return true; }
};

TEST(offset_ptr, can_be_the_pointer_type_of_a_vector)
{
    std::vector<int, fancy<int>> numbers;
    for (int i = 0; i < 100; ++i)
        numbers.insert(numbers.begin() + i / 2, i);
    EXPECT_EQ(numbers.size(), 100U);
    EXPECT_EQ(numbers[49], 99);
    auto const moved = std::move(numbers);
    EXPECT_EQ(moved.front(), 1);
    EXPECT_EQ(moved.back(), 0);
}

} // namespace
