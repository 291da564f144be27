// The contenders that make and destroy objects of the type `item`, which has 32 bytes. The
// constructor of a contender receives the maximum number of objects that it will hold. Only
// contenders of a fixed size use that number.
#pragma once

#include <bench/contenders/boost.hpp>
#include <bench/contenders/foonathan.hpp>
#include <bench/contenders/heaps.hpp>
#include <bench/contenders/limits.hpp>
#include <bench/contenders/mallard.hpp>
#include <bench/entrants.hpp>
#include <bench/measure.hpp>

#include <mallard/object_pool.hpp>

#include <boost/pool/object_pool.hpp>

#include <plf_colony.h>

namespace mallard::bench {

/// The object that the contenders make. It has four words, all of which are written, and a
/// destructor with an effect, so that no contender can skip the destructor.
struct item {
    std::uint64_t id;
    std::uint64_t price;
    item* before = nullptr;
    item* after = nullptr;

    item(std::uint64_t number, std::uint64_t cost) noexcept : id(number), price(cost) {}
    item(item const&) = delete;
    ~item() { keep(id); }
};

/// Makes objects in the blocks of any pool or heap, by placement new as users write it.
template <class Blocks>
class items_in {
public:
    static constexpr bool is_pool = bench::is_pool<Blocks>;
    static std::string name() { return Blocks::name() + "+new"; }

    static const char* refusal(demand d)
    {
        if constexpr (choosy<Blocks>)
            return Blocks::refusal(d);
        else
            return nullptr;
    }

    explicit items_in(std::size_t capacity) : blocks_(capacity) {}

    item* make(std::uint64_t id) { return ::new (blocks_.allocate()) item(id, id); }
    void destroy(item* i)
    {
        i->~item();
        blocks_.deallocate(i);
    }

private:
    Blocks blocks_;
};

/// Makes objects by the new and delete of this process.
class items_by_new {
public:
    static constexpr bool is_pool = false;
    static std::string name() { return "glibc-" + glibc_version() + "+new/delete"; }

    explicit items_by_new(std::size_t) {}

    item* make(std::uint64_t id) { return new item(id, id); }
    void destroy(item* i) { delete i; }
};

class items_of_boost {
public:
    static std::string name() { return boost_name("object_pool", ""); }

    static const char* refusal(demand d)
    {
        return d.live > 2000 ? "a destroy searches the free list: minutes for so many" : nullptr;
    }

    explicit items_of_boost(std::size_t) {}

    item* make(std::uint64_t id) { return pool_.construct(id, id); }
    void destroy(item* i) { pool_.destroy(i); }

private:
    boost::object_pool<item> pool_;
};

/// Makes objects in a plf::colony, which identifies an element by an iterator. This contender keeps
/// the iterator, as users of a colony do. Finding the iterator from an address would be slow,
/// because it requires a search of the groups of elements.
class items_of_colony {
public:
    static std::string name() { return "plf-colony-7.10"; }

    explicit items_of_colony(std::size_t) {}

    item* make(std::uint64_t id) { return &*colony_.emplace(id, id); }
    void destroy(item* i) { colony_.erase(colony_.get_iterator(i)); }

    template <class F>
    void for_each(F f)
    {
        for (item& i : colony_)
            f(i);
    }

private:
    plf::colony<item> colony_;
};

/// A pool as used in games, after the idea of EASTL's fixed_pool. It has a fixed number of slots in
/// one array, and a list of free slots. The list is null if all slots are in use.
class items_of_fixed_pool {
public:
    static std::string name() { return "fixed-pool"; }

    explicit items_of_fixed_pool(std::size_t capacity) : region_(capacity * sizeof(slot))
    {
        next_ = reinterpret_cast<slot*>(region_.begin());
        end_ = next_ + capacity;
    }

    item* make(std::uint64_t id)
    {
        slot* const s = take();
        return s == nullptr ? nullptr : ::new (s) item(id, id);
    }
    void destroy(item* i)
    {
        i->~item();
        free_ = ::new (i) slot{free_, {}};
    }

private:
    struct slot {
        slot* next;
        std::byte rest[sizeof(item) - sizeof(void*)];
    };

    slot* take() noexcept
    {
        if (free_ != nullptr)
            return std::exchange(free_, free_->next);
        return next_ == end_ ? nullptr : next_++;
    }

    region region_;
    slot* free_ = nullptr;
    slot* next_;
    slot* end_;
};

template <object_pool_options Options>
class items_of_pool {
public:
    static std::string name()
    {
        constexpr const char* suffix[] = {"", "/rc", "/arc"};
        return std::string("mallard/object_pool") + (Options.order == reuse::lifo ? "/lifo" : "") +
               (Options.checks == check::on ? "/checked" : "") +
               suffix[static_cast<std::size_t>(Options.counts)];
    }

    explicit items_of_pool(std::size_t) {}

    item* make(std::uint64_t id) { return pool_.make(id, id).leak(); }
    void destroy(item* i) { pool_.destroy(i); }

    template <class F>
    void for_each(F f)
    {
        pool_.for_each(f);
    }

private:
    object_pool<item, default_heap, Options> pool_;
};

/// Makes objects and holds each in a box. A box destroys its object, and its only member is the
/// address of the object.
class items_in_boxes {
public:
    static std::string name() { return "mallard/object_pool/box"; }

    explicit items_in_boxes(std::size_t) {}

    item* make(std::uint64_t id) { return pool_.make(id, id).leak(); }
    void destroy(item* i) { object_pool<item>::drop(i); }

private:
    object_pool<item> pool_;
};

inline constexpr std::size_t item_bytes = sizeof(item);

using item_contenders = contender_list<
    items_by_new, items_in<heap_blocks<mimalloc_tag>::of<item_bytes>>,
    items_in<heap_blocks<jemalloc_tag>::of<item_bytes>>,
    items_in<heap_blocks<gperftools_tag>::of<item_bytes>>, items_in<std_pool_blocks<item_bytes>>,
    items_of_boost, items_in<boost_pool<item_bytes>>,
    items_in<foonathan_pool<fm::node_pool>::of<item_bytes>>, items_of_colony, items_of_fixed_pool,
    items_in<pool_of_constant<reuse::lifo>::of<item_bytes>>,
    items_in<pool_of_constant<reuse::ordered>::of<item_bytes>>,
    items_of_pool<object_pool_options{}>, items_of_pool<object_pool_options{.order = reuse::lifo}>,
    items_in_boxes, items_of_pool<object_pool_options{.checks = check::on}>>;

/// Returns the figures of a case: ns, and cycles of this processor.
inline std::vector<figure> ns_and_cycles(std::string const& case_name)
{
    return {{case_name}, {case_name, "cycles_per_op"}};
}
inline void put(std::span<double> out, double ns)
{
    put_ns_and_cycles(out, ns);
}

// Each of these functions returns the experiments of one source file of the suite.
std::vector<experiment> typed_objects(effort);
std::vector<experiment> typed_handles(effort);
std::vector<experiment> typed_threads(effort);
std::vector<experiment> typed_slot_map(effort);
std::vector<experiment> typed_shared_slot_map(effort);
std::vector<experiment> typed_file(effort);
std::vector<experiment> typed_adaptors(effort);

} // namespace mallard::bench
