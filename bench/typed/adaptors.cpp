// Measures how much time each adaptor adds to an allocation and its free.
#include <bench/measure.hpp>
#include <bench/typed/contenders.hpp>

#include <mallard/adapt/counted.hpp>
#include <mallard/adapt/failing.hpp>
#include <mallard/adapt/limited.hpp>
#include <mallard/adapt/synchronized.hpp>
#include <mallard/adapt/traced.hpp>
#include <mallard/debug/checked.hpp>
#include <mallard/debug/guarded.hpp>

#include <memory>

namespace mallard::bench {
namespace {

using bare = multipool<>;

struct discard {
    template <class Event>
    void operator()(Event const&) const noexcept
    {
    }
};

struct bare_tag {
    static constexpr const char* name = "mallard/multipool";
    static auto make() { return std::make_unique<bare>(); }
};
struct counted_tag {
    static constexpr const char* name = "mallard/counted";
    static auto make() { return std::make_unique<counted<bare>>(); }
};
struct shared_counted_tag {
    static constexpr const char* name = "mallard/counted/lock_free";
    static auto make() { return std::make_unique<counted<bare, sync::lock_free>>(); }
};
struct limited_tag {
    static constexpr const char* name = "mallard/limited";
    static auto make() { return std::make_unique<limited<bare>>(budget{.bytes = 1 << 20}); }
};
struct synchronized_tag {
    static constexpr const char* name = "mallard/synchronized";
    static auto make() { return std::make_unique<synchronized<bare>>(); }
};
struct checked_tag {
    static constexpr const char* name = "mallard/checked";
    static auto make() { return std::make_unique<checked<bare>>(); }
};
struct sampled_tag {
    static constexpr const char* name = "mallard/guarded/1-in-1000";
    static auto make()
    {
        return std::make_unique<guarded<bare, guarded_options{.one_in = 1000}>>();
    }
};
struct guarded_tag {
    static constexpr const char* name = "mallard/guarded";
    static auto make() { return std::make_unique<guarded<bare>>(); }
};
struct traced_tag {
    static constexpr const char* name = "mallard/traced";
    static auto make() { return std::make_unique<traced<bare, discard>>(discard{}); }
};

template <class Tag>
struct adapted {
    static std::string name() { return Tag::name; }
    decltype(Tag::make()) of = Tag::make();
};

using adaptors =
    contender_list<adapted<bare_tag>, adapted<counted_tag>, adapted<shared_counted_tag>,
                   adapted<limited_tag>, adapted<synchronized_tag>, adapted<checked_tag>,
                   adapted<sampled_tag>, adapted<guarded_tag>, adapted<traced_tag>>;

template <class C>
[[gnu::noinline]] double pairs(batch& timed)
{
    C adapted;
    auto& memory = *keep(adapted.of.get());
    return timed.ns_of_one([&](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            memory.deallocate(keep(memory.allocate({64, 8})), {64, 8});
    });
}

} // namespace

std::vector<experiment> typed_adaptors(effort how)
{
    return {
        {.asks =
             "What does each adaptor add to a block of 64 bytes, allocated from a multipool and "
             "given back? A pair",
         .figures = ns_and_cycles("adaptor/pair/64B"),
         .entrants = entrants_of(adaptors{}, {}, [how]<class C>() -> round_function {
             return
                 [timed = batch(how)](std::span<double> out) mutable { put(out, pairs<C>(timed)); };
         })}};
}

} // namespace mallard::bench
