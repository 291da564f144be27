// Behaviour of every kind of object_pool.
#include "../support/asan.hpp"
#include "../support/census.hpp"
#include "../support/object_kinds.hpp"

#include <algorithm>
#include <array>
#include <memory>

namespace {

using namespace mallard::testing;
using namespace mallard;

template <class Kind>
class any_object_pool : public ::testing::Test {
protected:
    using citizens = typename Kind::template pool<citizen>;

    /// Makes objects one by one. The test has to destroy them.
    template <class Pool>
    std::vector<citizen*> fill(Pool& objects, std::size_t count)
    {
        std::vector<citizen*> all;
        for (std::size_t i = 0; i < count; ++i)
            all.push_back(objects.make(people, static_cast<int>(i)).leak());
        return all;
    }

    census people;
    failing_source heap;
};
TYPED_TEST_SUITE(any_object_pool, object_kinds, object_kind_names);

TYPED_TEST(any_object_pool, allocates_no_memory_before_the_first_object)
{
    typename TestFixture::citizens objects(this->heap);
    objects.clear();
    objects.trim();
    objects.release();
    objects.clear(wink_out);
    objects.release(wink_out);
    objects.for_each([](citizen&) { FAIL(); });
    EXPECT_FALSE(objects.owns(nullptr));
    EXPECT_EQ(this->heap.calls(), 0U);
}

TYPED_TEST(any_object_pool, constructs_an_object_and_destroys_it)
{
    typename TestFixture::citizens objects(this->heap);
    {
        auto const one = objects.make(this->people, 7);
        auto const two = objects.try_make(this->people, 8);
        EXPECT_EQ(one->value, 7);
        EXPECT_EQ(two->value, 8);
        EXPECT_TRUE(objects.owns(one.get()));
        EXPECT_EQ(objects.classify(one.get()), validity::valid);
        EXPECT_EQ(objects.stats().blocks_live, 2U);
    }
    EXPECT_EQ(this->people.dead(), 2U);
    citizen* const raw = objects.make(this->people, 9).leak();
    EXPECT_TRUE(this->people.has(raw));
    objects.destroy(raw);
    EXPECT_EQ(objects.classify(raw), validity::invalid);
    EXPECT_EQ(objects.stats().blocks_live, 0U);
}

TYPED_TEST(any_object_pool, adopts_a_leaked_object_into_a_box)
{
    typename TestFixture::citizens objects(this->heap);
    auto box = objects.adopt(objects.make(this->people, 5).leak());
    EXPECT_EQ(box->value, 5);
    box.reset();
    EXPECT_EQ(this->people.living(), 0U);
}

TYPED_TEST(any_object_pool, destroys_the_remaining_objects_in_its_destructor)
{
    {
        typename TestFixture::citizens objects(this->heap);
        std::vector<citizen*> const all = this->fill(objects, 3000);
        for (std::size_t i = 0; i < all.size(); i += 3)
            objects.destroy(all[i]);
        EXPECT_EQ(this->people.living(), 2000U);
    }
    EXPECT_EQ(this->people.dead(), 3000U);
    EXPECT_EQ(this->heap.bytes(), 0U);
}

TYPED_TEST(any_object_pool, frees_the_slot_when_a_constructor_throws)
{
    typename TestFixture::citizens objects(this->heap);
    for (int i = 0; i < 3; ++i) {
        this->people.throw_at(1);
        EXPECT_THROW(static_cast<void>(objects.make(this->people)), int);
        this->people.throw_at(1);
        EXPECT_THROW(static_cast<void>(objects.try_make(this->people)), int);
        EXPECT_EQ(objects.stats().blocks_live, 0U);
    }
    objects.for_each([](citizen&) { FAIL(); });
    EXPECT_EQ(objects.make(this->people, 3)->value, 3);
}

TYPED_TEST(any_object_pool, changes_nothing_when_a_call_of_the_source_fails)
{
    for_each_refusal([this](failing_source& source) {
        typename TestFixture::citizens objects(source);
        std::size_t made = 0;
        for (std::size_t i = 0; i < 5000; ++i) {
            auto one = objects.try_make(this->people);
            made += one != nullptr;
            std::ignore = one.leak();
        }
        EXPECT_GE(made, 4999U);
        for (std::size_t i = 0; i < 3000; ++i)
            try {
                std::ignore = objects.make(this->people).leak();
                ++made;
            } catch (const std::bad_alloc&) {
            }
        EXPECT_EQ(objects.stats().blocks_live, made);
        EXPECT_EQ(this->people.living(), made);
    });
}

TYPED_TEST(any_object_pool, constructs_all_objects_of_a_batch_or_none)
{
    typename TestFixture::citizens objects(this->heap);
    std::array<citizen*, 100> out{};
    this->people.throw_at(60);
    EXPECT_THROW(objects.make_batch(out, this->people, 1), int);
    EXPECT_EQ(this->people.dead(), 59U);
    this->people.throw_at(60);
    EXPECT_THROW(std::ignore = objects.try_make_batch(out, this->people, 1), int);
    EXPECT_EQ(objects.stats().blocks_live, 0U);

    objects.make_batch(out, this->people, 4);
    EXPECT_TRUE(std::ranges::all_of(out, [](citizen* one) { return one->value == 4; }));
    objects.destroy_batch(std::span(out).first(40));
    EXPECT_EQ(this->people.living(), 60U);

    objects.make_batch({}, this->people);
    EXPECT_TRUE(objects.try_make_batch({}, this->people));
}

TYPED_TEST(any_object_pool, constructs_no_object_of_a_batch_when_the_source_fails)
{
    typename TestFixture::citizens objects(this->heap);
    objects.destroy(objects.make(this->people).leak());
    this->heap.fail_from(1);
    std::vector<citizen*> out(100'000);
    EXPECT_FALSE(objects.try_make_batch(out, this->people));
    EXPECT_THROW(objects.make_batch(out, this->people), std::bad_alloc);
    EXPECT_EQ(this->people.living(), 0U);
    EXPECT_EQ(objects.stats().blocks_live, 0U);
}

TYPED_TEST(any_object_pool, visits_each_object_in_address_order)
{
    typename TestFixture::citizens objects(this->heap);
    std::vector<citizen*> all = this->fill(objects, 2000);
    for (std::size_t i = 0; i < all.size(); i += 2)
        objects.destroy(std::exchange(all[i], nullptr));
    std::erase(all, nullptr);
    std::ranges::sort(all);
    std::vector<citizen*> seen;
    objects.for_each([&](citizen& one) {
        seen.push_back(&one);
        if (one.value % 5 == 0)
            objects.destroy(&one);
    });
    EXPECT_EQ(seen, all);
    EXPECT_EQ(this->people.living(), 800U);
}

TYPED_TEST(any_object_pool, stays_usable_when_a_visitor_throws)
{
    typename TestFixture::citizens objects(this->heap);
    std::vector<citizen*> const all = this->fill(objects, 100);
    objects.destroy(all[3]);
    EXPECT_THROW(objects.for_each([](citizen&) { throw 1; }), int);
    std::size_t const taken = this->heap.bytes();
    this->fill(objects, 100);
    EXPECT_EQ(objects.stats().blocks_live, 199U);
    EXPECT_EQ(this->heap.bytes(), taken);
}

TYPED_TEST(any_object_pool, keeps_its_memory_at_clear_and_returns_it_at_release)
{
    typename TestFixture::citizens objects(this->heap);
    for (int round = 0; round < 3; ++round) {
        this->fill(objects, 2000);
        std::size_t const taken = this->heap.bytes();
        objects.clear();
        EXPECT_EQ(this->people.living(), 0U);
        EXPECT_EQ(objects.stats().blocks_live, 0U);
        EXPECT_GE(this->heap.bytes(), taken);
        this->fill(objects, 2000);
        EXPECT_LE(this->heap.bytes(), taken + 8192)
            << "the array of recently freed blocks may be new";
        objects.release();
        EXPECT_EQ(this->people.living(), 0U);
        EXPECT_EQ(this->heap.bytes(), 0U);
    }
}

TYPED_TEST(any_object_pool, runs_no_destructor_at_a_wink_out)
{
    typename TestFixture::citizens objects(this->heap);
    this->fill(objects, 1000);
    objects.clear(wink_out);
    EXPECT_EQ(objects.stats().blocks_live, 0U);
    this->people.forget();
    this->fill(objects, 1000);
    objects.release(wink_out);
    EXPECT_EQ(this->heap.bytes(), 0U);
    EXPECT_EQ(this->people.dead(), 0U);
    this->people.forget();
    EXPECT_EQ(objects.make(this->people, 1)->value, 1);
}

TYPED_TEST(any_object_pool, returns_idle_chunks_at_trim)
{
    typename TestFixture::citizens objects(this->heap);
    for (citizen* const one : this->fill(objects, 3000))
        objects.destroy(one);
    objects.trim();
    EXPECT_EQ(objects.stats().chunks, 0U);
    EXPECT_EQ(objects.make(this->people, 2)->value, 2);
}

TYPED_TEST(any_object_pool, poisons_the_slots_of_destroyed_objects)
{
    typename TestFixture::citizens objects(this->heap);
    citizen* const kept = objects.make(this->people).leak();
    citizen* const dead = objects.make(this->people).leak();
    objects.destroy(dead);
    EXPECT_FALSE(is_poisoned(kept, false));
    EXPECT_TRUE(is_poisoned(dead, true));
    objects.clear();
    EXPECT_TRUE(is_poisoned(kept, true));
}

// --- hooks

struct counting_hooks {
    void acquired(citizen& one)
    {
        if (++*made == throws_at)
            throw 'x';
        one.value += 100;
    }
    void released(citizen& one) noexcept
    {
        EXPECT_GE(one.value, 100);
        ++*gone;
    }
    std::size_t *made, *gone;
    std::size_t throws_at = 0;
};

TYPED_TEST(any_object_pool, calls_its_hooks_for_each_object)
{
    std::size_t made = 0, gone = 0;
    {
        typename TypeParam::template pool<citizen, counting_hooks> objects(
            this->heap, nullptr, counting_hooks{&made, &gone, 13});
        EXPECT_EQ(objects.make(this->people, 1)->value, 101);
        EXPECT_EQ(gone, 1U);
        std::array<citizen*, 10> out{};
        objects.make_batch(out, this->people);
        EXPECT_EQ(made, 11U);
        EXPECT_THROW(std::ignore = objects.try_make_batch(out, this->people), char);
        EXPECT_EQ(gone, 2U) << "released is not called for an object whose acquired threw";
        EXPECT_EQ(this->people.living(), 10U);
        objects.hooks().throws_at = made + 1;
        EXPECT_THROW(std::ignore = objects.try_make(this->people), char);
        EXPECT_EQ(this->people.living(), 10U);
        EXPECT_EQ(objects.stats().blocks_live, 10U);
    }
    EXPECT_EQ(gone, 12U);
}

// --- objects that own each other

/// An object that owns two others of its kind.
template <class Kind>
struct tree : citizen {
    using pool = typename Kind::template pool<tree>;
    using citizen::citizen;
    mallard::box<tree, pool> left, right;
};

TYPED_TEST(any_object_pool, destroys_objects_that_own_each_other)
{
    using node = tree<TypeParam>;
    typename node::pool nodes(this->heap);
    auto const grow = [&](auto& self, int depth) -> typename node::pool::box {
        auto root = nodes.make(this->people, depth);
        if (depth > 0) {
            root->left = self(self, depth - 1);
            root->right = self(self, depth - 1);
        }
        return root;
    };
    grow(grow, 6).reset();
    EXPECT_EQ(this->people.dead(), 127U);
    EXPECT_EQ(nodes.stats().blocks_live, 0U);

    std::ignore = grow(grow, 6).leak();
    nodes.clear();
    EXPECT_EQ(this->people.dead(), 254U);
    EXPECT_EQ(nodes.stats().blocks_live, 0U);

    node* const upper = grow(grow, 0).leak(); // made first, so it is destroyed first
    node* const lower = grow(grow, 6).leak();
    upper->left = nodes.adopt(lower);
    lower->left->left->right = nodes.adopt(upper); // closes the cycle
    nodes.release();
    EXPECT_EQ(this->people.dead(), 382U);
}

// --- moves

TYPED_TEST(any_object_pool, is_found_by_its_handles_after_a_move)
{
    using pool_type = typename TestFixture::citizens;
    if constexpr (std::movable<pool_type>) {
        auto first = std::make_unique<pool_type>(this->heap);
        this->fill(*first, 1000);
        auto box = first->make(this->people, 1);
        pool_type second(std::move(*first));
        EXPECT_EQ(first->stats().blocks_live, 0U);
        {
            auto const another = first->make(this->people, 2);
            EXPECT_TRUE(first->owns(another.get()));
            EXPECT_TRUE(second.owns(box.get()));
        }
        first.reset();
        box.reset();
        EXPECT_EQ(second.stats().blocks_live, 1000U);

        box = second.make(this->people, 3);
        pool_type third(this->heap);
        this->fill(third, 10);
        third = std::move(second);
        EXPECT_EQ(this->people.living(), 1001U) << "the objects that `third` had are destroyed";
        auto& same = third; // a compiler warns of `third = std::move(third)`
        third = std::move(same);
        box.reset();
        EXPECT_EQ(third.stats().blocks_live, 1000U);
        this->fill(second, 5);
    } else {
        static_assert(TypeParam::options.threads != sync::none);
    }
}

} // namespace
