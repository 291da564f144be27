// Random programs over an object_pool, compared with a model that records which object owns which.
#include "../support/census.hpp"
#include "../support/choices.hpp"
#include "../support/length.hpp"
#include "../support/sources.hpp"

#include <mallard/object_pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

namespace mallard::testing {
namespace {

/// Runs a random program, and checks after each step:
/// - An object lives while a handle owns it, and is destroyed once.
/// - Weak handles find living objects only.
/// - A slot is in use while an object or a weak handle uses it.
/// - A failed call changes nothing.
///
/// An object owns only objects with larger numbers. So there are no cycles, and the model can
/// compute which objects live.
template <object_pool_options Options>
class object_program {
    struct node;
    using pool = object_pool<node, ref<failing_source>, Options>;
    using strong = shared_handle<node, pool>;
    using watcher = weak<node, pool>;
    using box = mallard::box<node, pool>;

    struct node : citizen {
        using citizen::citizen;
        strong children[2], self;
        watcher watched;
    };

    /// An object in the model. Its key in the map is the number of the object, which is never used
    /// again.
    struct entry {
        node* object;
        std::size_t owners = 1;
        int children[2] = {};
    };

public:
    explicit object_program(seeded& choose) : choose_(choose) {}

    void run(std::size_t steps)
    {
        while (steps-- > 0)
            step();
        verify();
        watchers_.clear();
        if (either()) {
            end_all([this] { nodes_->release(); });
            require(source_.bytes() == 0, "release returns all memory");
        }
        roots_.clear();
        boxes_.clear();
        for (node* const one : leaked_)
            if (either())
                nodes_->destroy(one);
        nodes_.reset(); // destroys the objects that are left
        require(people_.living() == 0, "the destructor of the pool destroys all objects");
    }

private:
    void step()
    {
        switch (choose_(24)) {
        default:
            return make();
        case 5:
        case 6:
            return drop_strong();
        case 7:
            return drop_box();
        case 8:
            return destroy_leaked();
        case 9:
        case 10:
            return copy_strong();
        case 11:
        case 12:
        case 13:
            return adopt_child();
        case 14:
        case 15:
            return watch();
        case 16:
        case 17:
            return lock();
        case 18:
            return drop_watcher();
        case 19:
            return make_unique();
        case 20:
            return choose_(4) == 0 ? source_.fail_every(1 + choose_(3)) : source_.fail_never();
        case 21:
            return choose_(8) == 0 ? verify() : void();
        case 22:
            return choose_(64) == 0 ? end_all([this] { nodes_->clear(); }) : void();
        case 23:
            return choose_(8) == 0 ? move_or_trim() : void();
        }
    }

    bool either() { return choose_(2) == 0; }

    template <class Things>
    auto& some(Things& things)
    {
        return things[choose_(things.size())];
    }
    template <class Things>
    auto take_some(Things& things)
    {
        std::swap(some(things), things.back());
        auto taken = std::move(things.back());
        things.pop_back();
        return taken;
    }

    void make()
    {
        if (choose_(8) == 0)
            people_.throw_at(1);
        std::size_t const failures = source_.failures();
        std::size_t const slots = nodes_->stats().blocks_live;
        box made;
        try {
            made = either() ? nodes_->make(people_, next_) : nodes_->try_make(people_, next_);
        } catch (int) {
        } catch (const std::bad_alloc&) {
            require(source_.failures() != failures || Options.grow.is_single(),
                    "an allocation fails only if the source fails");
        }
        people_.throw_at(0);
        if (!made) {
            require(nodes_->stats().blocks_live == slots, "a failure leaves no slot in use");
            return;
        }
        model_[next_] = {made.get()};
        ++next_;
        switch (choose_(3)) {
        case 0:
            return boxes_.push_back(std::move(made));
        case 1:
            return leaked_.push_back(made.leak());
        case 2:
            return roots_.push_back(std::move(made));
        }
    }

    /// Removes one owner of an object from the model.
    void forget_owner(int number)
    {
        entry& e = model_.at(number);
        if (--e.owners != 0)
            return;
        int const children[] = {e.children[0], e.children[1]};
        model_.erase(number);
        for (int const child : children)
            if (child != 0)
                forget_owner(child);
    }

    void drop_strong()
    {
        if (roots_.empty())
            return;
        strong going = take_some(roots_);
        forget_owner(going->value);
        going.reset();
        verify_count();
    }
    void drop_box()
    {
        if (boxes_.empty())
            return;
        box going = take_some(boxes_);
        if (either())
            return roots_.push_back(std::move(going));
        forget_owner(going->value);
        going.reset();
        verify_count();
    }
    void destroy_leaked()
    {
        if (leaked_.empty())
            return;
        node* const going = take_some(leaked_);
        if (either())
            return boxes_.push_back(nodes_->adopt(going));
        forget_owner(going->value);
        nodes_->destroy(going);
        verify_count();
    }

    void copy_strong()
    {
        if (roots_.empty())
            return;
        strong const copy = some(roots_);
        ++model_.at(copy->value).owners;
        roots_.push_back(either() ? copy : nodes_->share(*copy));
    }

    /// Makes an object the child of an object with a smaller number.
    void adopt_child()
    {
        if (roots_.empty())
            return;
        strong parent = some(roots_), child = some(roots_);
        if (parent->value >= child->value)
            return;
        std::size_t const which = choose_(2);
        int& known = model_.at(parent->value).children[which];
        int const before = std::exchange(known, child->value);
        ++model_.at(child->value).owners;
        parent->children[which] = child;
        if (before != 0)
            forget_owner(before);
        verify_count();
    }

    void watch()
    {
        if (roots_.empty())
            return;
        strong const& one = some(roots_);
        if (either())
            watchers_.emplace_back(one->value, one);
        else
            some(roots_)->watched = one;
    }

    void lock()
    {
        if (watchers_.empty())
            return;
        auto const& [number, watching] = some(watchers_);
        bool const lives = model_.contains(number);
        require(watching.expired() == !lives, "a weak handle knows whether its object lives");
        strong locked = watching.lock();
        require(static_cast<bool>(locked) == lives, "lock finds a living object");
        if (!locked)
            return;
        require(locked->value == number, "lock finds the object that the handle was made from");
        ++model_.at(number).owners;
        roots_.push_back(std::move(locked));
    }
    void drop_watcher()
    {
        if (watchers_.empty())
            return;
        if (auto const [number, watching] = take_some(watchers_); either())
            watchers_.emplace_back(number, watching);
    }

    void make_unique()
    {
        if (roots_.empty())
            return;
        strong one = take_some(roots_);
        int const number = one->value;
        if (box only = one.try_unique()) {
            require(model_.at(number).owners == 1, "a box has the only handle");
            return boxes_.push_back(std::move(only));
        }
        require(one->value == number, "a failed try_unique changes nothing");
        roots_.push_back(std::move(one));
    }

    /// Drops all handles outside of the pool, so that each object has no owner or owns itself. Then
    /// calls `end`.
    template <class End>
    void end_all(End end)
    {
        for (box& one : boxes_)
            std::ignore = one.leak();
        for (strong& one : roots_)
            if (node& itself = *one; itself.self == nullptr)
                itself.self = std::move(one);
        roots_.clear();
        boxes_.clear();
        leaked_.clear();
        end();
        model_.clear();
        verify();
        require(nodes_->stats().blocks_live <= watchers_.size(), "slots are kept by weak handles");
    }

    void move_or_trim()
    {
        if constexpr (std::movable<pool>)
            if (either())
                *nodes_ = pool(std::move(*nodes_));
        nodes_->trim(choose_(2) * choose_(1 << 17));
        verify_count();
    }

    void verify_count() const
    {
        require(people_.living() == model_.size(), "exactly the objects with an owner live");
    }

    void verify()
    {
        verify_count();
        std::vector<const node*> expected, seen;
        for (auto const& [number, e] : model_) {
            require(people_.has(e.object) && e.object->value == number,
                    "an object keeps its address and value");
            expected.push_back(e.object);
        }
        std::ranges::sort(expected);
        nodes_->for_each([&](const node& one) { seen.push_back(&one); });
        require(seen == expected, "each object is visited once, in address order");
    }

    seeded& choose_;
    census people_;
    failing_source source_;
    std::optional<pool> nodes_{std::in_place, source_};
    std::map<int, entry> model_;
    int next_ = 1;
    std::vector<strong> roots_;
    std::vector<box> boxes_;
    std::vector<node*> leaked_;
    std::vector<std::pair<int, watcher>> watchers_;
};

template <object_pool_options Options>
void run_programs()
{
    auto const first = static_cast<std::size_t>(GTEST_FLAG_GET(random_seed));
    for (std::size_t seed = first; seed < first + repeated(20, 2); ++seed) {
        doing = "seed " + std::to_string(seed);
        seeded choose(seed);
        object_program<Options>(choose).run(3000);
    }
    doing.clear();
}

TEST(random_object_pool, agrees_with_a_model)
{
    run_programs<object_pool_options{.counts = counts::local}>();
}

TEST(random_object_pool, agrees_with_a_model_when_it_checks)
{
    run_programs<object_pool_options{
        .counts = counts::local, .chunk = 4096, .checks = check::on}>();
}

TEST(random_object_pool, agrees_with_a_model_in_a_list_on_a_single_chunk)
{
    run_programs<object_pool_options{
        .counts = counts::local, .grow = growth::none(50'000), .order = reuse::lifo}>();
}

} // namespace
} // namespace mallard::testing
