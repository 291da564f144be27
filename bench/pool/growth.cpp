// Measures a pool that starts empty and grows, so that every allocation returns a block that was
// never allocated before.
#include <bench/growing.hpp>
#include <bench/pool/contenders.hpp>

namespace mallard::bench {
namespace {

constexpr std::size_t fresh_count = 100'000;
constexpr std::size_t fresh_bytes = 32;

experiment fresh(effort how, bool written)
{
    std::string const name = std::string("growth/fresh-100000x32B") + (written ? "" : "/untouched");
    return {.asks = std::string("A new pool gives 100,000 blocks of 32 bytes") +
                    (written ? ", each written to" : ", which stay untouched") +
                    ", and goes; its source has the memory at hand. ns a block, and ns a block "
                    "to give all back at the end",
            .figures = {{name}, {name, "ns_per_free"}},
            .entrants = entrants_of(
                pool_contenders<fresh_bytes>{}, {}, [how, written]<class C>() -> round_function {
                    return [written, s = std::make_shared<fresh_state<C>>(how, fresh_count,
                                                                          std::size_t{16} << 20)](
                               std::span<double> out) {
                        s->warm_up(written);
                        auto const ns =
                            s->timed.ns_of_pass([&] { s->fill(written); }, [&] { s->drop(); });
                        out[0] = ns[0] / static_cast<double>(s->slots.size());
                        out[1] = ns[1] / static_cast<double>(s->slots.size());
                    };
                })};
}

experiment fresh_cold(effort how)
{
    experiment e = fresh(how, true);
    e.asks = "A new pool in a new process gives 100,000 blocks of 32 bytes, each written to: page "
             "faults included. ns a block";
    e.figures = {{"growth/fresh-100000x32B/cold"}, {"growth/fresh-100000x32B/cold", "ns_per_free"}};
    e.fresh_process = true;
    e.in_brief = false;
    return e;
}

template <reuse Order>
class doubling_pool {
public:
    static std::string name()
    {
        return Order == reuse::lifo ? "mallard/none/lifo/doubling"
                                    : "mallard/none/ordered/doubling";
    }

    explicit doubling_pool(std::size_t) {}

    void* allocate() { return pool_.allocate(); }
    void deallocate(void* block) { pool_.deallocate(block); }

private:
    static constexpr std::size_t first_bytes = growth_first * growth_bytes;
    static constexpr pool_options options{
        .block = growth_bytes,
        .chunk = first_bytes,
        .grow = {.first = first_bytes, .max = growth_count * growth_bytes},
        .order = Order};

    pool<default_heap, options> pool_;
};

using growing_contenders = contender_list<
    heap_blocks<glibc_tag>::of<growth_bytes>, heap_blocks<mimalloc_tag>::of<growth_bytes>,
    heap_blocks<jemalloc_tag>::of<growth_bytes>, heap_blocks<gperftools_tag>::of<growth_bytes>,
    std_pool_blocks<growth_bytes>, boost_doubling_pool, boost_pool_resource_blocks<growth_bytes>,
    foonathan_doubling_pool, inline_list<growth_bytes>, doubling_pool<reuse::lifo>,
    doubling_pool<reuse::ordered>, pool_of_constant<reuse::lifo>::of<growth_bytes>,
    pool_of_runtime<reuse::ordered>::of<growth_bytes>,
    pool_of_huge_pages<reuse::ordered>::of<growth_bytes>>;

experiment growth_to_a_million(effort how, const char* variant, bool warm)
{
    std::string const name = "growth/256-to-1000000";
    return {.asks =
                std::string("A pool of 256 blocks of 64 bytes grows by doubling to 1,000,000, ") +
                (warm ? "its source having the memory at hand: "
                      : "page faults included where its source asks for pages: ") +
                "what does an allocation cost, on average and at worst? ns a block",
            .figures = {{name, "ns_per_op", variant},
                        {name, "p50_ns", variant},
                        {name, "p99_ns", variant},
                        {name, "p999_ns", variant}},
            .entrants = entrants_of(
                growing_contenders{}, {},
                [how, warm]<class C>() -> round_function {
                    std::size_t const bytes = warm ? growth_count * (growth_bytes + 16) * 5 / 4 : 0;
                    return [s = std::make_shared<fresh_state<C>>(how, growth_count, bytes)](
                               std::span<double> out) {
                        double const from = cpu_ns();
                        s->fill(true);
                        out[0] = (cpu_ns() - from) / static_cast<double>(s->slots.size());
                        s->drop();
                        table<double> ns = latencies<by_ticks>(*s);
                        out[1] = select_percentile(ns, 0.5);
                        out[2] = select_percentile(ns, 0.99);
                        out[3] = select_percentile(ns, 0.999);
                    };
                }),
            .in_brief = !warm,
            .weight = 6};
}

} // namespace

std::vector<experiment> pool_growth(effort how)
{
    return {fresh(how, true), fresh(how, false), fresh_cold(how),
            growth_to_a_million(how, "faithful", false),
            growth_to_a_million(how, "corrected", true)};
}

} // namespace mallard::bench
