// Tests that std::pmr::polymorphic_allocator over Mallard's resources meets its requirements.
#include "../support/sources.hpp"

#include <mallard/pmr.hpp>

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace {

using namespace mallard::testing;
using std::pmr::polymorphic_allocator;

class polymorphic_allocator_over_pool : public ::testing::Test {
public:
    failing_resource upstream;
    mallard::pmr::multipool memory{&upstream};
    mallard::pmr::multipool other{&upstream};

    std::size_t live() const { return memory.stats().blocks_live; }
};

TEST_F(polymorphic_allocator_over_pool, is_equal_if_the_resources_are_equal)
{
    EXPECT_TRUE(polymorphic_allocator<int>(&memory) == polymorphic_allocator<char>(&memory));
    EXPECT_FALSE(polymorphic_allocator<int>(&memory) == polymorphic_allocator<int>(&other));
    EXPECT_FALSE(polymorphic_allocator<int>(&memory) == polymorphic_allocator<int>());
}

TEST_F(polymorphic_allocator_over_pool, allocates_and_frees_bytes_and_objects)
{
    polymorphic_allocator<> from(&memory);
    from.deallocate_bytes(from.allocate_bytes(100, 32), 100, 32);
    from.deallocate_object(from.allocate_object<double>(7), 7);
    auto* const text = from.new_object<std::pmr::string>(100, 'x');
    EXPECT_EQ(text->get_allocator().resource(), &memory);
    EXPECT_EQ(live(), 2u);
    from.delete_object(text);
    EXPECT_EQ(live(), 0u);
}

TEST_F(polymorphic_allocator_over_pool, fails_for_more_objects_than_the_address_space_holds)
{
    polymorphic_allocator<double> from(&memory);
    EXPECT_THROW(std::ignore = from.allocate(SIZE_MAX / 8 + 1), std::bad_array_new_length);
    volatile std::size_t most = SIZE_MAX / 8; // hides the value from the compiler
    EXPECT_THROW(std::ignore = from.allocate(most), refusal) << "the exception of the upstream";
    EXPECT_EQ(live(), 0u);
}

TEST_F(polymorphic_allocator_over_pool, leaks_nothing_when_a_constructor_throws)
{
    struct throws {
        throws() { throw 1; }
    };
    EXPECT_THROW(std::ignore = polymorphic_allocator<>(&memory).new_object<throws>(), int);
    EXPECT_EQ(live(), 0u);
}

TEST_F(polymorphic_allocator_over_pool, is_passed_to_both_halves_of_a_pair)
{
    using pair = std::pair<std::pmr::string, std::pmr::vector<int>>;
    polymorphic_allocator<pair> from(&memory);
    pair* const p = from.allocate(1);
    auto const check = [&] {
        EXPECT_EQ(p->first.get_allocator().resource(), &memory);
        EXPECT_EQ(p->second.get_allocator().resource(), &memory);
        std::destroy_at(p);
    };
    from.construct(p), check();
    from.construct(p, "text", 3u), check();
    from.construct(p, std::piecewise_construct, std::tuple("text", 2), std::tuple(3u, 7)), check();
    pair const source("text", 3u);
    from.construct(p, source), check();
    from.construct(p, pair(source)), check();
    from.deallocate(p, 1);
}

TEST_F(polymorphic_allocator_over_pool,
       is_replaced_by_the_default_in_a_copied_container_and_kept_by_assignment)
{
    std::pmr::vector<std::pmr::string> const source({"a", "b"}, &memory);
    std::pmr::vector<std::pmr::string> const copy = source;
    EXPECT_EQ(copy.get_allocator().resource(), std::pmr::get_default_resource());
    EXPECT_EQ(copy.front().get_allocator().resource(), std::pmr::get_default_resource());

    std::pmr::vector<std::pmr::string> target(&other);
    target = source;
    EXPECT_EQ(target.front().get_allocator().resource(), &other);
    std::pmr::vector<std::pmr::string> donor({"c"}, &memory);
    target = std::move(donor);
    EXPECT_EQ(target.front().get_allocator().resource(), &other);
    EXPECT_EQ(target.front(), "c");
}

TEST_F(polymorphic_allocator_over_pool, moves_a_container_without_a_copy)
{
    std::pmr::vector<int> source(1000, &memory);
    int const* const data = source.data();
    std::pmr::vector<int> const moved = std::move(source);
    EXPECT_EQ(moved.data(), data);
    EXPECT_EQ(moved.get_allocator().resource(), &memory);
}

TEST_F(polymorphic_allocator_over_pool, keeps_the_old_contents_when_growth_of_a_container_throws)
{
    std::pmr::map<int, std::pmr::string> m(&memory);
    m[1] = std::pmr::string(1000, 'x');
    std::size_t const before = live();
    upstream.source.fail_from(1);
    EXPECT_THROW(m[2].assign(100'000, 'y'), refusal);
    EXPECT_EQ(m[1], std::pmr::string(1000, 'x'));
    m.erase(2);
    EXPECT_EQ(live(), before);
}

} // namespace
