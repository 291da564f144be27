// Measures the cases in the table of fastalloc, one of the projects from which Mallard grew: an
// object is made in a pool and dropped by its handle.
//
// Faithful (as published): the pool is constructed before the clock starts, for 100, 1,000 or
// 10,000 objects, but holds only one object at a time. The figure is the median over rounds, not
// Criterion's estimate.
//
// Corrected: the pool holds 100, 1,000 or 10,000 objects. Each step drops a random object and makes
// another.
//
// The report's Box is a std::unique_ptr here. Its result names the malloc that it uses.
#include <bench/barrier.hpp>
#include <bench/contenders/boost.hpp>
#include <bench/contenders/foonathan.hpp>
#include <bench/contenders/heaps.hpp>
#include <bench/contenders/threads.hpp>
#include <bench/entrants.hpp>
#include <bench/measure.hpp>
#include <bench/seeds/contenders.hpp>

#include <mallard/heap.hpp>
#include <mallard/object_pool.hpp>
#include <mallard/sync.hpp>

#include <array>
#include <memory>

namespace mallard::bench {
namespace {

__extension__ using u128 = unsigned __int128;
using bytes_256 = std::array<std::uint64_t, 32>;

/// Makes the compiler store the object in memory, and assume that its value may have changed.
template <class T>
T const& black_box(T const& value) noexcept
{
    asm volatile("" : : "r"(&value) : "memory");
    return value;
}

// --- the contenders: each constructor receives the number of objects that exist at a time

/// Makes objects by `new`, and destroys them by `delete`.
template <class T>
class boxes_of_glibc {
public:
    static std::string name() { return glibc_tag::name() + "/unique_ptr"; }
    using handle = std::unique_ptr<T>;

    handle make(T const& value) { return std::make_unique<T>(value); }
};

/// Constructs objects in the blocks of a pool or a heap.
template <class T, class Blocks>
class boxes_in {
    struct give_back {
        Blocks* blocks = nullptr;
        void operator()(T* object) const { blocks->deallocate(object); }
    };

public:
    static std::string name() { return Blocks::name() + "/unique_ptr"; }
    using handle = std::unique_ptr<T, give_back>;

    handle make(T const& value)
    {
        return handle(::new (blocks_.allocate()) T(value), give_back{&blocks_});
    }

private:
    Blocks blocks_{1};
};

template <std::size_t Bytes>
class blocks_of_mallard_heap {
public:
    static std::string name() { return "mallard/heap"; }

    explicit blocks_of_mallard_heap(std::size_t) {}

    void* allocate() { return heap_.allocate({Bytes, 16}); }
    void deallocate(void* block) { heap_.deallocate(block); }

private:
    mallard::heap heap_;
};

template <class T, sync Threads, reuse Order = object_pool_options{}.order>
class growing_pool {
    using pool =
        object_pool<T, default_heap, object_pool_options{.threads = Threads, .order = Order}>;

public:
    static std::string name()
    {
        return std::string("mallard/object_pool/") + word_for(Threads) +
               (Order == reuse::lifo ? "/lifo" : "");
    }
    using handle = typename pool::box;

    handle make(T const& value) { return pool_.make(value); }

private:
    pool pool_;
};

/// A pool that never grows. Its only chunk has room for the header and `Capacity` objects.
template <class T, std::size_t Capacity, sync Threads>
class fixed_pool {
    static constexpr std::size_t bytes = Capacity * (sizeof(T) + alignof(T) + 16) + 8192;
    using pool = object_pool<T, default_heap,
                             object_pool_options{.chunk = std::bit_ceil(bytes),
                                                 .grow = growth::none(std::bit_ceil(bytes)),
                                                 .threads = Threads}>;

public:
    static std::string name()
    {
        return std::string("mallard/object_pool/") + word_for(Threads) + "/fixed";
    }
    using handle = typename pool::box;

    handle make(T const& value) { return pool_.make(value); }

private:
    pool pool_;
};

// The block size for a `T`, which is at least the size of the free list's link.
template <class T>
constexpr std::size_t block_for = std::max(sizeof(T), sizeof(void*));

template <class T, std::size_t Capacity>
using contenders =
    contender_list<boxes_of_glibc<T>,
                   boxes_in<T, typename heap_blocks<mimalloc_tag>::of<block_for<T>>>,
                   boxes_in<T, typename heap_blocks<jemalloc_tag>::of<block_for<T>>>,
                   boxes_in<T, typename heap_blocks<gperftools_tag>::of<block_for<T>>>,
                   boxes_in<T, boost_pool<block_for<T>>>,
                   boxes_in<T, typename foonathan_pool<fm::node_pool>::of<block_for<T>>>,
                   boxes_in<T, blocks_of_mallard_heap<sizeof(T)>>,
                   fixed_pool<T, Capacity, sync::none>, fixed_pool<T, Capacity, sync::lock_free>,
                   growing_pool<T, sync::none, reuse::lifo>, growing_pool<T, sync::none>,
                   growing_pool<T, sync::mutex>, growing_pool<T, sync::thread_cached>>;

// --- the operations of the contenders

template <class C, class T>
void make_and_drop(C& objects, T const& value, std::size_t times)
{
    for (std::size_t i = 0; i < times; ++i) {
        auto const handle = objects.make(black_box(value));
        keep(&*handle);
    }
}

template <class C, class T>
round_function one_live(effort how, T value, std::size_t pairs)
{
    return [timed = batch(how), value, pairs,
            objects = std::make_shared<C>()](std::span<double> out) mutable {
        out[0] = timed.ns_of_one(
            [&](std::size_t count) { make_and_drop(*objects, value, count * pairs); });
    };
}

/// An array of handles. It is destroyed before the pool that made the handles.
template <class C>
class held {
public:
    using handle = typename C::handle;

    template <class T>
    held(std::size_t live, T const& value)
        : slots_(live), which_(random_indices(std::size_t{1} << 14, live))
    {
        for (place& p : slots_)
            ::new (p.bytes) handle(objects_.make(value));
    }
    held(const held&) = delete;
    held& operator=(const held&) = delete;
    ~held()
    {
        for (place& p : slots_)
            std::destroy_at(&of(p));
    }

    template <class T>
    void replace(T const& value)
    {
        place& p = slots_[which_[at_++ % which_.size()]];
        std::destroy_at(&of(p));
        handle* const made = ::new (p.bytes) handle(objects_.make(black_box(value)));
        keep(&**made);
    }

private:
    struct place {
        alignas(handle) std::byte bytes[sizeof(handle)];
    };

    static handle& of(place& p) { return *std::launder(reinterpret_cast<handle*>(p.bytes)); }

    C objects_;
    table<place> slots_;
    table<std::uint32_t> which_;
    std::size_t at_ = 0;
};

template <class C, class T>
round_function many_live(effort how, T value, std::size_t live)
{
    return [timed = batch(how), value, all = std::make_shared<held<C>>(how.count(live), value)](
               std::span<double> out) mutable {
        out[0] = timed.ns_of_one([&](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i)
                all->replace(value);
        });
    };
}

// --- the experiments

template <class T, std::size_t Capacity>
experiment faithful(effort how, std::string const& name, std::string const& what, T value,
                    std::size_t pairs = 1)
{
    return {.asks = "fastalloc: " + what + " is made in a pool for " + std::to_string(Capacity) +
                    " and dropped, one at a time" +
                    (pairs == 1 ? ". ns a pair" : ", twice. ns of both pairs"),
            .figures = {{name, "ns_per_op", "faithful"}},
            .entrants = entrants_of(
                contenders<T, Capacity>{}, {},
                [how, value, pairs]<class C>() { return one_live<C>(how, value, pairs); }),
            .rounds = report_repeats,
            .in_brief = Capacity == 1000 && sizeof(T) == 4 && pairs == 1};
}

template <class T, std::size_t Capacity>
experiment corrected(effort how, std::string const& name, std::string const& what, T value)
{
    return {.asks = "fastalloc, corrected: " + std::to_string(Capacity) + " live, each " + what +
                    "; a random one is dropped and another made. ns a pair",
            .figures = {{name, "ns_per_op", "corrected"}},
            .entrants =
                entrants_of(contenders<T, Capacity>{}, {order::shuffled, 1},
                            [how, value]<class C>() { return many_live<C>(how, value, Capacity); }),
            .rounds = report_repeats,
            .in_brief = Capacity == 10'000};
}

template <class T, std::size_t Capacity>
void add_both(std::vector<experiment>& all, effort how, std::string const& name,
              std::string const& what, T value)
{
    all.push_back(faithful<T, Capacity>(how, name, what, value));
    all.push_back(corrected<T, Capacity>(how, name, what, value));
}

} // namespace

std::vector<experiment> seeds_fastalloc(effort how)
{
    constexpr std::int32_t answer = 42;
    std::vector<experiment> all;
    add_both<std::int32_t, 100>(all, how, "fastalloc/i32/100", "an i32", answer);
    add_both<std::int32_t, 1000>(all, how, "fastalloc/i32/1000", "an i32", answer);
    add_both<std::int32_t, 10'000>(all, how, "fastalloc/i32/10000", "an i32", answer);
    add_both<std::uint8_t, 1000>(all, how, "fastalloc/u8", "a u8", std::uint8_t{42});
    add_both<u128, 1000>(all, how, "fastalloc/u128", "a u128", u128{42});
    add_both<bytes_256, 1000>(all, how, "fastalloc/256B", "a struct of 256 bytes", bytes_256{42});
    all.push_back(faithful<std::int32_t, 1000>(how, "fastalloc/i32/twice", "an i32", answer, 2));
    return all;
}

} // namespace mallard::bench
