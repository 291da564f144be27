// Frees blocks in random order and allocates blocks again. If an allocator links its free blocks,
// it has a cache miss for each block.
#include <bench/barrier.hpp>
#include <bench/measure.hpp>
#include <bench/pool/contenders.hpp>

#include <memory>

namespace mallard::bench {
namespace {

constexpr std::size_t block_bytes = 64;

/// A pool with `live` blocks in use, and an array of pointers to the blocks.
template <class C>
struct populated {
    explicit populated(std::size_t live)
        : blocks(live), slots(live), shuffled(indices(live, order::shuffled))
    {
        for (void*& slot : slots)
            take(slot, 0);
    }
    populated(const populated&) = delete;
    populated& operator=(const populated&) = delete;
    ~populated()
    {
        for (std::size_t i = 0; !is_pool<C> && i < slots.size(); ++i)
            blocks.deallocate(slots[i]);
    }

    void take(void*& slot, std::uint64_t value)
    {
        slot = blocks.allocate();
        touch(slot, value);
    }

    /// Reads the blocks, because other contenders may have evicted them from the caches.
    void visit() const
    {
        for (void* const slot : slots)
            keep(*static_cast<const std::uint64_t*>(slot));
    }

    C blocks;
    table<void*> slots;
    table<std::uint32_t> shuffled;
};

template <class C>
round_function all_shuffled(effort how, std::size_t wanted)
{
    return [timed = two_phases(how),
            p = std::make_shared<populated<C>>(how.count(wanted))](std::span<double> out) mutable {
        p->visit();
        auto const ns = timed.ns_of_pass(
            [&] {
                for (std::uint32_t const i : p->shuffled)
                    p->blocks.deallocate(p->slots[i]);
            },
            [&] {
                for (void*& slot : p->slots)
                    p->take(slot, 1);
            });
        auto const count = static_cast<double>(p->slots.size());
        out[0] = (ns[0] + ns[1]) / count;
        out[1] = ns[1] / count;
        out[2] = ns[0] / count;
    };
}

std::string in_words(std::size_t live)
{
    return live >= 10'000 ? std::to_string(live * block_bytes >> 20) + " MiB"
                          : std::to_string(live * block_bytes >> 10) + " KiB";
}

experiment live(effort how, std::size_t count)
{
    std::string const name = "live/" + std::to_string(count);
    return {.asks = std::to_string(count) + " blocks of 64 bytes (" + in_words(count) +
                    ") are freed in random order and allocated again, each written to: what does "
                    "that cost a block? ns_per_op = ns_per_alloc + ns_per_free",
            .figures = {{name}, {name, "ns_per_alloc"}, {name, "ns_per_free"}},
            .entrants =
                entrants_of(pool_contenders<block_bytes>{}, {order::shuffled, count},
                            [how, count]<class C>() { return all_shuffled<C>(how, count); }),
            .weight = count >= 100'000 ? 6.0 : 1.0};
}

/// Frees the blocks of `k` random slots and allocates them again. Each call uses the next `k` slots
/// of one long shuffle.
template <class C>
class burster {
public:
    burster(effort how, std::size_t live, std::vector<std::size_t> sizes)
        : p_(std::make_shared<populated<C>>(live)), sizes_(std::move(sizes)),
          timed_(sizes_.size(), batch(how))
    {
    }

    void round(std::span<double> out)
    {
        p_->visit();
        for (std::size_t i = 0; i < sizes_.size(); ++i) {
            std::size_t const k = sizes_[i];
            double const ns = timed_[i].ns_of_one([&](std::size_t count) {
                for (std::size_t n = 0; n < count; ++n)
                    burst(*p_, k);
            });
            out[i] = ns / static_cast<double>(k);
        }
    }

private:
    void burst(populated<C>& p, std::size_t k)
    {
        at_ = at_ + k > p.shuffled.size() ? 0 : at_;
        for (std::size_t j = at_; j < at_ + k; ++j)
            p.blocks.deallocate(p.slots[p.shuffled[j]]);
        for (std::size_t j = at_; j < at_ + k; ++j)
            p.take(p.slots[p.shuffled[j]], j);
        at_ += k;
    }

    std::shared_ptr<populated<C>> p_;
    std::vector<std::size_t> sizes_;
    std::vector<batch> timed_;
    std::size_t at_ = 0;
};

experiment burst_of(effort how, std::size_t live)
{
    std::vector<std::size_t> sizes;
    std::vector<figure> figures;
    for (std::size_t k = 10; k <= std::min<std::size_t>(live, 100'000); k *= 10) {
        sizes.push_back(std::min(k, how.count(live)));
        figures.push_back({"burst/" + std::to_string(k) + "-of-" + std::to_string(live)});
    }
    return {.asks = "Of " + std::to_string(live) +
                    " live blocks of 64 bytes, so many random ones are freed, then as many "
                    "allocated and written to: is there a burst at which the pool falls behind "
                    "a list? ns a pair",
            .figures = figures,
            .entrants = entrants_of(pool_contenders<block_bytes>{}, {order::shuffled, live},
                                    [how, live, sizes]<class C>() -> round_function {
                                        return [b = burster<C>(how, how.count(live), sizes)](
                                                   std::span<double> out) mutable { b.round(out); };
                                    }),
            .weight = live >= 100'000 ? 3.0 : 1.0};
}

} // namespace

std::vector<experiment> pool_reuse(effort how)
{
    return {live(how, 1000),     live(how, 30'000),     live(how, 500'000),
            burst_of(how, 1000), burst_of(how, 30'000), burst_of(how, 500'000)};
}

} // namespace mallard::bench
