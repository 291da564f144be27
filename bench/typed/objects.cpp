// Measures objects that are made and destroyed. In some cases there is one object at a time. In
// others, many objects are visited, then destroyed in any order.
#include <bench/measure.hpp>
#include <bench/typed/contenders.hpp>

#include <memory>

namespace mallard::bench {
namespace {

template <class C>
[[gnu::noinline]] double pairs(batch& timed)
{
    std::unique_ptr<C> const items(keep(new C(1)));
    return timed.ns_of_one([&](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            items->destroy(keep(items->make(i)));
    });
}

template <class C>
[[gnu::noinline]] double bursts(batch& timed)
{
    constexpr std::size_t many = 24;
    std::unique_ptr<C> const items(keep(new C(many)));
    item* made[many];
    return timed.ns_of_one([&](std::size_t count) {
        for (std::size_t n = 0; n < count; ++n) {
            for (item*& i : made)
                i = keep(items->make(n));
            for (item* const i : made)
                items->destroy(keep(i));
        }
    }) / many;
}

experiment pair(effort how)
{
    return {.asks = "What does it cost to make an object of 32 bytes and to destroy it, the pool "
                    "being on the heap? A pair",
            .figures = ns_and_cycles("pair/32B"),
            .entrants = entrants_of(item_contenders{}, {}, [how]<class C>() -> round_function {
                return [timed = batch(how)](std::span<double> out) mutable {
                    put(out, pairs<C>(timed));
                };
            })};
}

experiment burst(effort how)
{
    return {.asks = "24 objects are made, then destroyed in the same order. A pair",
            .figures = ns_and_cycles("burst/24"),
            .entrants = entrants_of(item_contenders{}, {}, [how]<class C>() -> round_function {
                return [timed = batch(how)](std::span<double> out) mutable {
                    put(out, bursts<C>(timed));
                };
            })};
}

/// A contender with `live` objects, an array of pointers to them, and a random order of the array.
template <class C>
struct populated {
    explicit populated(std::size_t live)
        : items(live), slots(live), shuffled(indices(live, order::shuffled))
    {
        for (item*& slot : slots)
            slot = items.make(1);
    }
    populated(const populated&) = delete;
    populated& operator=(const populated&) = delete;
    ~populated()
    {
        for (item* const i : slots)
            if (i != nullptr && !is_pool<C>)
                items.destroy(i);
    }

    C items;
    table<item*> slots;
    table<std::uint32_t> shuffled;
};

template <class C>
round_function all_shuffled(effort how, std::size_t live)
{
    return [timed = two_phases(how),
            p = std::make_shared<populated<C>>(how.count(live))](std::span<double> out) mutable {
        for (item* const i : p->slots)
            keep(i->id);
        auto const ns = timed.ns_of_pass(
            [&] {
                for (std::uint32_t const i : p->shuffled)
                    p->items.destroy(p->slots[i]);
            },
            [&] {
                for (item*& slot : p->slots)
                    slot = p->items.make(2);
            });
        put(out, (ns[0] + ns[1]) / static_cast<double>(p->slots.size()));
    };
}

experiment live(effort how, std::size_t count)
{
    return {.asks = std::to_string(count) +
                    " objects are destroyed in random order and made again. A pair",
            .figures = ns_and_cycles("live/" + std::to_string(count)),
            .entrants =
                entrants_of(item_contenders{}, {order::shuffled, count},
                            [how, count]<class C>() { return all_shuffled<C>(how, count); }),
            .weight = count >= 100'000 ? 4.0 : 1.0};
}

// --- visits

/// An array of pointers that own objects, as in a program without a pool.
class items_in_a_vector {
public:
    static std::string name() { return "std::vector<unique_ptr>"; }

    explicit items_in_a_vector(std::size_t) {}

    item* make(std::uint64_t id) { return all_.emplace_back(std::make_unique<item>(id, id)).get(); }
    void destroy(item* i)
    {
        for (auto& owner : all_) // touches only a few objects, before the clock starts
            if (owner.get() == i)
                return void(owner.reset());
    }

    template <class F>
    void for_each(F f)
    {
        for (auto const& owner : all_)
            if (owner != nullptr)
                f(*owner);
    }

private:
    std::vector<std::unique_ptr<item>> all_;
};

using visited_contenders =
    contender_list<items_in_a_vector, items_of_colony, items_of_pool<object_pool_options{}>,
                   items_of_pool<object_pool_options{.order = reuse::lifo}>>;

template <class C>
round_function visits(effort how, std::size_t percent)
{
    auto const p = std::make_shared<populated<C>>(how.count(10'000));
    std::size_t const dead = p->slots.size() * (100 - percent) / 100;
    for (std::size_t i = 0; i < dead; ++i)
        p->items.destroy(std::exchange(p->slots[p->shuffled[i]], nullptr));
    return [p, timed = batch(how),
            live = static_cast<double>(p->slots.size() - dead)](std::span<double> out) mutable {
        std::uint64_t sum = 0;
        put(out, timed.ns_of_one([&](std::size_t count) {
            for (std::size_t n = 0; n < count; ++n)
                p->items.for_each([&sum](item& i) { sum += i.price; });
            keep(sum);
        }) / live);
    };
}

experiment visit(effort how, std::size_t percent)
{
    return {.asks = "10,000 objects were made and all but " + std::to_string(percent) +
                    " % of them destroyed, at random: what does a visit cost a live one?",
            .figures = ns_and_cycles("visit/" + std::to_string(percent) + "%"),
            .entrants = entrants_of(visited_contenders{}, {},
                                    [how, percent]<class C>() { return visits<C>(how, percent); })};
}

} // namespace

std::vector<experiment> typed_objects(effort how)
{
    return {pair(how),          burst(how),      live(how, 1000), live(how, 30'000),
            live(how, 500'000), visit(how, 100), visit(how, 50),  visit(how, 10)};
}

} // namespace mallard::bench
