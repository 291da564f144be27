// Measures allocating many blocks and then freeing all of them.
#include <bench/bulk.hpp>
#include <bench/measure.hpp>
#include <bench/page_faults.hpp>
#include <bench/patterns.hpp>
#include <bench/worker/blocks.hpp>
#include <bench/worker/job.hpp>

#include <array>
#include <cstring>
#include <memory>

namespace mallard::bench {
namespace {

class bulk {
public:
    bulk(task const& t, effort how)
        : bytes_(t.bytes), blocks_(how.count(t.count)), timed_(how),
          in_order_(indices(blocks_.size(), static_cast<order>(t.variant)))
    {
    }

    // Allocates all blocks, then frees them. If the frees are in random order, the allocator may
    // return the blocks of the next round in that order.
    void round(std::span<double> out)
    {
        auto const [taking, giving] =
            timed_.ns_of_pass([this] { take_all(); }, [this] { give_all(); });
        auto const count = static_cast<double>(blocks_.size());
        out[0] = taking / count;
        out[1] = giving / count;
    }

private:
    void take_all()
    {
        for (std::size_t i = 0; i < blocks_.size(); ++i) {
            void* const block = by_malloc::take(bytes_);
            touch_byte(block, i);
            blocks_[i] = block;
        }
    }
    void give_all()
    {
        for (std::uint32_t const i : in_order_)
            by_malloc::give(blocks_[i], bytes_);
    }

    std::size_t bytes_;
    table<void*> blocks_;
    two_phases timed_;
    table<std::uint32_t> in_order_;
};

round_function in_bulk(task const& t, effort how)
{
    return [b = std::make_shared<bulk>(t, how)](std::span<double> out) { b->round(out); };
}

enum class touches : std::size_t { a_byte, pages, all, nothing };

void touch_as(touches how, void* block, std::size_t bytes)
{
    switch (how) {
    case touches::a_byte:
        touch_byte(block, bytes);
        break;
    case touches::pages:
        touch_pages(block, bytes);
        break;
    case touches::all:
        std::memset(block, 1, bytes);
        keep(block);
        break;
    case touches::nothing:
        break;
    }
}

// Allocates `count` blocks of each size, then frees them in the same order. Each size is twice the
// size before. A pass either handles all sizes together, or handles one size after the other.
class burst {
public:
    burst(task const& t, effort how, bool in_turn)
        : task_(t), in_turn_(in_turn), times_(how.count(how.is_brief() ? t.times / 10 : t.times)),
          timed_(how)
    {
        for (std::size_t bytes = t.bytes; bytes <= std::max(t.bytes, t.most); bytes += step(bytes))
            sizes_[kinds_++] = bytes;
        blocks_ = std::make_unique<table<void*>>(t.count * (in_turn ? 1 : kinds_));
    }

    // Writes the ns for each block. If a second figure is requested, writes the page faults for
    // each 1,000 blocks.
    void round(std::span<double> out)
    {
        double const faults = page_faults();
        done_ = 0;
        double const ns = task_.times == 0 ? ns_again_and_again() : ns_of_so_many();
        out[0] = ns;
        if (out.size() > 1)
            out[1] = (page_faults() - faults) * 1000 / static_cast<double>(done_);
    }

private:
    // Returns the difference from one size to the next. Small blocks, such as strings, differ by 8
    // bytes. Larger sizes double.
    std::size_t step(std::size_t bytes) const { return task_.most <= 64 ? 8 : bytes; }

    // Measures repeated passes. The first pass is not timed, because memory may have been returned
    // to the system since the last round.
    double ns_again_and_again()
    {
        pass();
        double const ns = timed_.ns_of_one([this](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i)
                pass();
        });
        return ns / static_cast<double>(blocks_of_a_pass());
    }
    // Measures as many passes as the task specifies. The first pass is timed too.
    double ns_of_so_many()
    {
        double const ns = ns_of([this] {
            for (std::size_t i = 0; i < std::max<std::size_t>(times_, 1); ++i)
                pass();
        });
        return ns / static_cast<double>(done_);
    }

    std::size_t blocks_of_a_pass() const { return task_.count * kinds_; }

    void pass()
    {
        if (in_turn_) {
            for (std::size_t kind = 0; kind < kinds_; ++kind)
                take_and_give(kind, 1);
        } else {
            take_and_give(0, kinds_);
        }
        done_ += blocks_of_a_pass();
    }

    void take_and_give(std::size_t first, std::size_t kinds)
    {
        std::size_t kind = 0;
        for (void*& block : *blocks_) {
            std::size_t const bytes = sizes_[first + kind];
            kind = kind + 1 == kinds ? 0 : kind + 1;
            block = by_malloc::take(bytes);
            touch_as(static_cast<touches>(task_.variant), block, bytes);
        }
        for (void* const block : *blocks_)
            by_malloc::give(block, 0);
    }

    task task_;
    bool in_turn_;
    std::size_t times_;
    std::size_t done_ = 0; // number of blocks of this round
    batch timed_;
    std::array<std::size_t, 16> sizes_{};
    std::size_t kinds_ = 0;
    std::unique_ptr<table<void*>> blocks_;
};

template <bool InTurn>
round_function in_bursts(task const& t, effort how)
{
    return [b = std::make_shared<burst>(t, how, InTurn)](std::span<double> out) { b->round(out); };
}

constexpr job jobs[] = {
    {"bulk", in_bulk}, {"burst", in_bursts<false>}, {"burst/in-turn", in_bursts<true>}};

} // namespace

std::span<const job> bulk_jobs()
{
    return jobs;
}

} // namespace mallard::bench
