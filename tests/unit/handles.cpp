// Handles of an object_pool: box, rc, arc and weak.
#include "../support/asan.hpp"
#include "../support/census.hpp"
#include "../support/object_kinds.hpp"

#include <bit>
#include <type_traits>
#include <unordered_set>

namespace {

using namespace mallard::testing;
using namespace mallard;

// A handle is as large as a pointer, and converts only where ownership allows it.
using boxes = object_pool<int>;
using owners = rc_pool<int>;
static_assert(sizeof(boxes::box) == sizeof(void*));
static_assert(sizeof(owners::rc) == sizeof(void*));
static_assert(sizeof(owners::weak) == sizeof(void*));
static_assert(std::same_as<mallard::box<int>, boxes::box>);
static_assert(std::same_as<mallard::rc<int>, owners::rc>);
static_assert(std::same_as<mallard::arc<int>, arc_pool<int>::arc>);
static_assert(!std::copyable<boxes::box> && std::movable<boxes::box>);
static_assert(std::copyable<owners::rc> && std::copyable<owners::weak>);
static_assert(std::convertible_to<owners::box, owners::rc>);
static_assert(!std::convertible_to<const owners::box&, owners::rc>);
static_assert(!std::convertible_to<owners::rc, owners::box>);
static_assert(!std::convertible_to<int*, owners::rc>);
static_assert(!std::convertible_to<boxes::box, owners::box>);
static_assert(std::totally_ordered<owners::rc> && std::totally_ordered<boxes::box>);

TEST(box, destroys_the_object_it_owns_and_no_other)
{
    census people;
    object_pool<citizen> objects;
    using box = decltype(objects)::box;
    box nobody;
    EXPECT_FALSE(nobody);
    EXPECT_EQ(nobody, nullptr);
    EXPECT_EQ(nobody.leak(), nullptr);
    EXPECT_FALSE(objects.adopt(nullptr));

    box one = objects.make(people, 1);
    citizen* const raw = one.get();
    box two = std::move(one);
    EXPECT_EQ(two.get(), raw);
    EXPECT_EQ(one.get(), nullptr); // NOLINT(bugprone-use-after-move): a moved-from handle is empty
    two = objects.make(people, 2);
    EXPECT_EQ(people.dead(), 1U) << "the object that `two` owned before";
    swap(one, two);
    EXPECT_EQ((*one).value, 2);
    one = box(std::move(one));
    box& itself = one;
    one = std::move(itself);
    EXPECT_EQ(one->value, 2);
    one = nullptr;
    EXPECT_EQ(people.living(), 0U);
}

TEST(box, is_ordered_and_hashed_by_address)
{
    object_pool<int> objects;
    std::unordered_set<boxes::box> all;
    boxes::box one = objects.make(1), two = objects.make(1);
    EXPECT_NE(one, two);
    EXPECT_EQ(one < two, one.get() < two.get());
    all.insert(std::move(one));
    all.insert(std::move(two));
    EXPECT_EQ(all.size(), 2U);
}

template <class Kind>
class shared_handles : public ::testing::Test {
protected:
    struct node;
    using pool = typename Kind::template pool<node>;
    using strong = shared_handle<node, pool>;
    using watcher = weak<node, pool>;

    struct node : citizen {
        using citizen::citizen;
        strong next;
        watcher other;
        strong seen; // set by `at_end`
        void (*at_end)(node&) = nullptr;
        ~node()
        {
            if (at_end != nullptr)
                at_end(*this);
        }
    };

    strong make(int value = 0) { return nodes.make(people, value); }
    std::size_t slots() { return nodes.stats().blocks_live; }

    census people;
    failing_source heap;
    pool nodes{heap};
};
TYPED_TEST_SUITE(shared_handles, shared_object_kinds, object_kind_names);

TYPED_TEST(shared_handles, keep_the_object_alive_until_the_last_handle_is_destroyed)
{
    auto one = this->make(5);
    EXPECT_EQ(one.use_count(), 1U);
    auto two = one;
    EXPECT_EQ(two, one);
    EXPECT_EQ(one.use_count(), 2U);
    auto three = std::move(two);
    EXPECT_EQ(one.use_count(), 2U);
    EXPECT_EQ(two.use_count(), 0U); // NOLINT(bugprone-use-after-move): a moved-from handle is empty
    auto four = this->nodes.share(*one);
    EXPECT_EQ(one.use_count(), 3U);
    one.reset();
    three = nullptr;
    EXPECT_EQ(four->value, 5);
    four = this->make(6);
    EXPECT_EQ(this->people.dead(), 1U);
    auto& itself = four;
    four = itself;
    four = std::move(itself);
    EXPECT_EQ(four.use_count(), 1U);
    EXPECT_EQ(std::hash<decltype(four)>()(four), std::hash<const void*>()(four.get()));
}

TYPED_TEST(shared_handles, are_created_together_with_the_object)
{
    using kind = TypeParam;
    if constexpr (kind::options.counts == counts::local) {
        EXPECT_EQ(this->nodes.make_rc(this->people, 3)->value, 3);
        EXPECT_TRUE(this->nodes.try_make_rc(this->people));
    } else {
        EXPECT_EQ(this->nodes.make_arc(this->people, 3)->value, 3);
        EXPECT_TRUE(this->nodes.try_make_arc(this->people));
    }
    EXPECT_EQ(this->slots(), 0U);
}

TYPED_TEST(shared_handles, become_a_box_only_if_there_is_no_other_handle)
{
    auto one = this->make(1);
    {
        auto const two = one;
        EXPECT_FALSE(one.try_unique());
        EXPECT_EQ(one.use_count(), 2U);
    }
    {
        mallard::weak const watching = one;
        EXPECT_FALSE(one.try_unique());
    }
    auto box = one.try_unique();
    EXPECT_FALSE(one);
    EXPECT_EQ(box->value, 1);
    EXPECT_FALSE(one.try_unique());
    one = std::move(box);
    EXPECT_EQ(one.use_count(), 1U);
    this->nodes.destroy(one.try_unique().leak());
    EXPECT_EQ(this->people.dead(), 1U);
}

TYPED_TEST(shared_handles, weak_handles_find_the_object_until_it_is_destroyed)
{
    typename TestFixture::watcher nothing;
    EXPECT_TRUE(nothing.expired());
    EXPECT_FALSE(nothing.lock());

    auto one = this->make(1);
    mallard::weak watching = one;
    auto const another = watching;
    EXPECT_FALSE(watching.expired());
    {
        auto const locked = watching.lock();
        EXPECT_EQ(locked, one);
        EXPECT_EQ(one.use_count(), 2U);
    }
    auto const* const place = one.get();
    one.reset();
    EXPECT_EQ(this->people.dead(), 1U);
    EXPECT_TRUE(is_poisoned(place, true)) << "although its slot is in use";
    EXPECT_EQ(this->slots(), 1U);
    for (int i = 0; i < 100; ++i) {
        auto const reused = this->make(2);
        EXPECT_NE(reused.get(), place);
        EXPECT_TRUE(watching.expired());
        EXPECT_FALSE(another.lock());
    }
    this->nodes.for_each([](auto&) { FAIL() << "a destroyed object was visited"; });
    watching = nothing;
    EXPECT_EQ(this->slots(), 1U);
    watching = another;
    swap(watching, nothing);
    nothing.reset();
    EXPECT_EQ(this->slots(), 1U);
}

TYPED_TEST(shared_handles, weak_handles_keep_the_slot_in_use)
{
    {
        typename TestFixture::watcher watching = this->make();
        auto moved = std::move(watching);
        EXPECT_EQ(this->slots(), 1U);
        auto& same = moved; // a compiler warns of `moved = std::move(moved)`
        moved = std::move(same);
        EXPECT_EQ(this->slots(), 1U);
    }
    EXPECT_EQ(this->slots(), 0U);
}

TYPED_TEST(shared_handles, destroy_a_whole_linked_chain_with_its_first_object)
{
    auto first = this->make();
    auto last = first;
    for (int i = 0; i < 500; ++i) {
        last->next = this->make(i);
        last->next->other = last;
        last = last->next;
    }
    EXPECT_EQ(last->other.lock()->next, last);
    last.reset();
    first.reset();
    EXPECT_EQ(this->people.dead(), 501U);
    EXPECT_EQ(this->slots(), 0U);
}

/// Objects that own each other in a cycle live until the pool destroys them.
TYPED_TEST(shared_handles, handles_in_rings_are_destroyed_by_clear_and_release)
{
    for (int round = 0; round < 3; ++round) {
        std::vector<typename TestFixture::strong> all;
        for (int i = 0; i < 300; ++i)
            all.push_back(this->make(i));
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i]->next = all[(i * 7 + 1) % all.size()]; // 7 and 300 have no common divisor
            all[i]->other = all[(i * 11) % all.size()];
            all[i]->seen = all[i];
        }
        all.clear();
        EXPECT_EQ(this->people.living(), 300U);
        if (round == 2)
            break; // the destructor of the pool destroys the objects, too
        round == 0 ? this->nodes.clear() : this->nodes.release();
        EXPECT_EQ(this->people.living(), 0U);
        EXPECT_EQ(this->slots(), 0U);
    }
}

TYPED_TEST(shared_handles, weak_handles_survive_a_clear_and_find_no_object_afterwards)
{
    std::vector<typename TestFixture::watcher> watchers;
    for (int i = 0; i < 10; ++i) {
        auto one = this->make(i);
        one->next = one; // keeps itself alive
        watchers.push_back(one);
    }
    watchers.push_back(this->make()); // the object is already destroyed
    this->nodes.clear();
    EXPECT_EQ(this->people.living(), 0U);
    EXPECT_EQ(this->slots(), watchers.size());
    std::vector<typename TestFixture::strong> others;
    for (int i = 0; i < 100; ++i)
        others.push_back(this->make());
    for (auto const& watching : watchers) {
        EXPECT_TRUE(watching.expired());
        EXPECT_FALSE(watching.lock());
    }
    others.clear();
    this->nodes.clear(); // a second clear changes nothing for the weak handles
    EXPECT_EQ(this->slots(), watchers.size());
    while (!watchers.empty()) {
        watchers.pop_back();
        EXPECT_EQ(this->slots(), watchers.size());
    }
}

/// During `clear`, a destructor may copy and drop handles. Its weak handles find only objects that
/// are not yet destroyed.
TYPED_TEST(shared_handles, weak_handles_find_only_living_objects_in_destructors_during_a_clear)
{
    static std::size_t found, missed;
    found = missed = 0;
    std::vector<typename TestFixture::strong> all;
    for (int i = 0; i < 100; ++i)
        all.push_back(this->make(i));
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i]->next = all[(i + 1) % all.size()];
        all[i]->other = all[(i + 50) % all.size()];
        all[i]->at_end = [](auto& self) {
            auto const copy = self.next;
            auto const watching = self.other;
            EXPECT_LT(copy.use_count(), 10U);
            EXPECT_FALSE(typename TestFixture::watcher(self.other).lock() == nullptr &&
                         !self.other.expired());
            if (auto const one = watching.lock()) {
                EXPECT_EQ(one->at_end, self.at_end);
                self.seen = one;
                ++found;
            } else {
                ++missed;
            }
        };
    }
    all.clear();
    this->nodes.clear();
    EXPECT_EQ(found, 50U);
    EXPECT_EQ(missed, 50U);
    EXPECT_EQ(this->slots(), 0U);
}

TYPED_TEST(shared_handles, weak_handles_cannot_revive_their_object_in_its_destructor)
{
    static bool expired;
    expired = false;
    auto one = this->make();
    one->other = one;
    one->at_end = [](auto& self) { expired = self.other.expired() && !self.other.lock(); };
    one.reset();
    EXPECT_TRUE(expired);
    EXPECT_EQ(this->slots(), 0U);
}

TYPED_TEST(shared_handles, may_be_dropped_while_the_pool_visits_its_objects)
{
    std::set<typename TestFixture::strong> all;
    for (int i = 0; i < 100; ++i)
        all.insert(this->make(i));
    this->nodes.for_each([&](auto& one) {
        if (one.value % 2 == 0)
            all.erase(this->nodes.share(one));
    });
    EXPECT_EQ(this->slots(), 50U);
    EXPECT_EQ(this->people.living(), 50U);
}

/// Returns the counts that a large number of handles would have. Making 2^29 handles one by one
/// would take too long.
template <counts Kind>
handle_counts<Kind> with_handles(std::uint64_t strong, std::uint64_t weak)
{
    return std::bit_cast<handle_counts<Kind>>(weak << 32 | strong);
}

template <counts Kind>
void expect_a_stop_at_too_many()
{
    constexpr std::uint64_t many = std::uint64_t{1} << 29;
    constexpr char told[] = "mallard: more than 2\\^29 handles of one object";
    auto counted = with_handles<Kind>(many - 1, many - 1);
    counted.add_strong();
    counted.add_weak();
    EXPECT_EQ(counted.strong(), many);
    EXPECT_DEATH(counted.add_strong(), told);
    EXPECT_DEATH(counted.add_weak(), told);
    EXPECT_DEATH(counted.lock(), told);
    auto locked = with_handles<Kind>(many - 1, 2);
    EXPECT_TRUE(locked.lock());
    EXPECT_DEATH(locked.lock(), told);
}

TEST(handle_counts, stop_the_process_if_there_are_too_many_handles)
{
    expect_a_stop_at_too_many<counts::local>();
    expect_a_stop_at_too_many<counts::shared>();
}

} // namespace
