// Measures handles in one thread. The cases are making and dropping them, copying them, and finding
// the pool that owns an object.
#include <bench/measure.hpp>
#include <bench/typed/contenders.hpp>

#include <memory>
#include <memory_resource>

namespace mallard::bench {
namespace {

struct unique_handles {
    static std::string name() { return "std::unique_ptr"; }
    auto make(std::uint64_t id) { return std::make_unique<item>(id, id); }
};
struct shared_handles {
    static std::string name() { return "std::shared_ptr"; }
    auto make(std::uint64_t id) { return std::make_shared<item>(id, id); }
    using watcher = std::weak_ptr<item>;
};
struct shared_handles_in_a_pool {
    static std::string name() { return "std::shared_ptr+libstdc++-pmr"; }
    auto make(std::uint64_t id)
    {
        return std::allocate_shared<item>(std::pmr::polymorphic_allocator<item>(&pool), id, id);
    }
    using watcher = std::weak_ptr<item>;
    std::pmr::unsynchronized_pool_resource pool;
};
struct shared_handles_in_mallard {
    using blocks = mallard::pool<default_heap, pool_options{.block = 64}>;
    static std::string name() { return "std::shared_ptr+mallard/pool"; }
    auto make(std::uint64_t id)
    {
        return std::allocate_shared<item>(mallard::allocator<item, blocks>(pool), id, id);
    }
    using watcher = std::weak_ptr<item>;
    blocks pool;
};
struct box_handles {
    static std::string name() { return "mallard/box"; }
    auto make(std::uint64_t id) { return pool.make(id, id); }
    object_pool<item> pool;
};
struct rc_handles {
    static std::string name() { return "mallard/rc"; }
    auto make(std::uint64_t id) { return pool.make_rc(id, id); }
    using watcher = rc_pool<item>::weak;
    rc_pool<item> pool;
};
struct arc_handles {
    static std::string name() { return "mallard/arc"; }
    auto make(std::uint64_t id) { return pool.make_arc(id, id); }
    using watcher = arc_pool<item>::weak;
    arc_pool<item> pool;
};

using sharing = contender_list<shared_handles, shared_handles_in_a_pool, shared_handles_in_mallard,
                               rc_handles, arc_handles>;
using owning = sharing::with<unique_handles, box_handles>;

/// Makes an experiment that times `step(contender, n)`.
template <class Contenders, class Step>
experiment timed_step(effort how, const char* name, const char* asks, Contenders who, Step step)
{
    return {.asks = asks,
            .figures = ns_and_cycles(name),
            .entrants = entrants_of(who, {}, [how, step]<class C>() -> round_function {
                return [timed = batch(how), c = std::make_shared<C>(),
                        step](std::span<double> out) mutable {
                    put(out, timed.ns_of_one([&](std::size_t count) { step(*c, count); }));
                };
            })};
}

} // namespace

std::vector<experiment> typed_handles(effort how)
{
    return {timed_step(how, "handle/life",
                       "An object is made, and dies with the only handle of it. Both", owning{},
                       [](auto& c, std::size_t count) {
                           for (std::size_t i = 0; i < count; ++i) {
                               auto handle = c.make(i);
                               keep(&handle);
                           }
                       }),
            timed_step(how, "handle/copy",
                       "A handle of an object is copied, and the copy dropped. Both", sharing{},
                       [](auto& c, std::size_t count) {
                           auto const first = c.make(1);
                           for (std::size_t i = 0; i < count; ++i) {
                               auto copy = first;
                               keep(&copy);
                           }
                       }),
            timed_step(how, "handle/lock",
                       "A weak handle is asked for an owner, which is dropped. Both", sharing{},
                       []<class C>(C& c, std::size_t count) {
                           auto const first = c.make(1);
                           typename C::watcher const watcher = first;
                           for (std::size_t i = 0; i < count; ++i) {
                               auto owner = watcher.lock();
                               keep(&owner);
                           }
                       })};
}

} // namespace mallard::bench
