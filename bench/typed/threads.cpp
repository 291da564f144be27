// Measures shared objects that several threads make, copy and drop.
#include <bench/contenders/threads.hpp>
#include <bench/threads/crew.hpp>
#include <bench/typed/contenders.hpp>

#include <memory>
#include <numeric>

namespace mallard::bench {
namespace {

/// An allocator over one of the heaps, for std::allocate_shared.
template <class T, class Tag>
struct heap_allocator {
    using value_type = T;
    heap_allocator() = default;
    template <class U>
    heap_allocator(heap_allocator<U, Tag> const&) noexcept
    {
    }
    T* allocate(std::size_t count)
    {
        return static_cast<T*>(heap<Tag>().allocate(count * sizeof(T)));
    }
    void deallocate(T* first, std::size_t count)
    {
        heap<Tag>().deallocate(first, count * sizeof(T));
    }
    template <class U>
    friend bool operator==(heap_allocator const&, heap_allocator<U, Tag> const&) noexcept
    {
        return true;
    }
};

template <class Tag>
struct shared_in_heap {
    static std::string name() { return "std::shared_ptr+" + Tag::name(); }
    auto make(std::uint64_t id)
    {
        return std::allocate_shared<item>(heap_allocator<item, Tag>(), id, id);
    }
};

template <sync Threads>
struct arcs {
    static std::string name() { return std::string("mallard/arc/") + word_for(Threads); }
    auto make(std::uint64_t id) { return pool.make_arc(id, id); }
    static constexpr growth grow = Threads == sync::lock_free ? growth::none(std::size_t{1} << 22)
                                                              : object_pool_options{}.grow;
    object_pool<item, default_heap,
                object_pool_options{.counts = counts::shared, .grow = grow, .threads = Threads}>
        pool;
};

/// Boxes, which have no reference count. They show the cost of the pool alone.
struct boxes {
    static std::string name() { return "mallard/box/thread_cached"; }
    auto make(std::uint64_t id) { return pool.make(id, id); }
    object_pool<item, default_heap, object_pool_options{.threads = sync::thread_cached}> pool;
};
template <class Tag>
struct unique_in_heap {
    static std::string name() { return "std::unique_ptr+" + Tag::name(); }
    struct drop {
        void operator()(item* i) const
        {
            i->~item();
            heap<Tag>().deallocate(i, sizeof *i);
        }
    };
    auto make(std::uint64_t id)
    {
        return std::unique_ptr<item, drop>(::new (heap<Tag>().allocate(sizeof(item))) item(id, id));
    }
};

using shared_makers =
    contender_list<shared_in_heap<glibc_tag>, shared_in_heap<mimalloc_tag>,
                   shared_in_heap<jemalloc_tag>, shared_in_heap<gperftools_tag>,
                   arcs<sync::thread_cached>, arcs<sync::lock_free>, arcs<sync::mutex>>;
using makers =
    shared_makers::with<unique_in_heap<glibc_tag>, unique_in_heap<mimalloc_tag>,
                        unique_in_heap<jemalloc_tag>, unique_in_heap<gperftools_tag>, boxes>;

/// Calls `step(contender, state)` in several threads, each with its own state.
template <class C, class State, class Step>
round_function in_crew(effort how, std::size_t threads, Step step)
{
    struct all_of_it {
        explicit all_of_it(std::size_t count) : states(count), team(count) {}
        C contender;
        std::vector<State> states; // after the contender, which must outlive the handles
        crew team;
    };
    return [all = std::make_shared<all_of_it>(threads), ns = window_ns(how),
            step](std::span<double> out) {
        std::vector<std::size_t> done(all->team.size());
        work_time const taken = all->team.run_for(ns, [&](std::size_t i) {
            done[i] = repeat(all->team, [&] { step(all->contender, all->states[i], i); });
        });
        auto const steps = static_cast<double>(std::accumulate(done.begin(), done.end(), 0ul));
        out[0] = taken.wall_ns / steps;
        out[1] = taken.cpu_ns / steps;
    };
}

std::vector<figure> costs(std::string const& name, std::size_t threads)
{
    std::string const case_name = name + "/T" + std::to_string(threads);
    return {{case_name, "ns_per_op", "", static_cast<int>(threads)},
            {case_name, "cpu_ns_per_op", "", static_cast<int>(threads)}};
}

/// The 64 objects of one thread. A step replaces one of them.
template <class C>
struct alignas(128) own_objects {
    std::vector<decltype(std::declval<C&>().make(1))> live =
        std::vector<decltype(std::declval<C&>().make(1))>(64);
    random_numbers random;
};

experiment lives(effort how, std::size_t threads)
{
    return {.asks = std::to_string(threads) +
                    " threads keep 64 objects each, of which a random one dies and another is "
                    "made. ns a pair: wall time / pairs of all threads, and CPU time",
            .figures = costs("threads/life", threads),
            .entrants = entrants_of(makers{}, {.threads = threads}, [how, threads]<class C>() {
                return in_crew<C, own_objects<C>>(how, threads,
                                                  [](C& c, own_objects<C>& own, std::size_t i) {
                                                      auto& slot = own.live[own.random.below(64)];
                                                      slot = {};
                                                      slot = c.make(i);
                                                  });
            })};
}

template <class C>
struct alignas(128) one_handle {
    decltype(std::declval<C&>().make(1)) mine;
};

experiment copies(effort how, std::size_t threads)
{
    return {.asks = std::to_string(threads) +
                    " threads copy and drop handles of ONE object: every count is on one line. ns "
                    "of both: wall time / copies of all threads, and CPU time",
            .figures = costs("threads/one-object", threads),
            .entrants =
                entrants_of(shared_makers{}, {.threads = threads}, [how, threads]<class C>() {
                    struct shared_object {
                        auto make(std::uint64_t id) { return of.make(id); }
                        C of;
                        decltype(std::declval<C&>().make(1)) first = of.make(1);
                    };
                    return in_crew<shared_object, one_handle<C>>(
                        how, threads, [](shared_object& c, one_handle<C>& own, std::size_t) {
                            own.mine = c.first;
                            own.mine = {};
                        });
                })};
}

} // namespace

std::vector<experiment> typed_threads(effort how)
{
    std::vector<experiment> all;
    for (std::size_t const threads : thread_counts(1))
        all.push_back(lives(how, threads));
    for (std::size_t const threads : thread_counts(1))
        all.push_back(copies(how, threads));
    return all;
}

} // namespace mallard::bench
