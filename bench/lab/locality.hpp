// Benchmark II of J. Lakos (ACCU 2017): a large program has many subsystems. Each subsystem is a
// list, and elements move from one list to another. If each list has a separate allocator, the
// nodes of a list stay together.
#pragma once

#include <bench/clock.hpp>
#include <bench/lab/cache_misses.hpp>
#include <bench/lab/counters.hpp>
#include <bench/lab/play.hpp>

#include <list>
#include <random>
#include <vector>

namespace mallard::bench::lab {

/// The parameters of one process of this benchmark. Several results that use the same lists share a
/// process.
struct locality_cell {
    std::size_t elements = 0;    ///< elements of all subsystems together
    std::size_t size = 1;        ///< elements of each subsystem before the shuffles
    std::size_t moves = 0;       ///< moves of elements in a shuffle
    std::size_t shuffles = 1;    ///< number of shuffles, with a measurement after each
    std::size_t walks = 1;       ///< repeated walks over a list before the next list
    std::size_t looks = 1;       ///< measurements; each has half the walks of the previous one
    std::size_t repetitions = 0; ///< of the access phase, as Lakos does; 0: corrected variant
    std::size_t accesses = 1;    ///< minimum number of accesses in one sample

    std::size_t subsystems() const noexcept { return elements / size; }
};

/// The subsystems of the program, each of which is a list. The list objects are contiguous,
/// whichever allocators their nodes come from, as in a program that was not designed around its
/// allocators.
template <class Memory>
class program {
    using allocator = typename std::allocator_traits<
        decltype(std::declval<Memory&>().allocator())>::template rebind_alloc<int>;
    using list = std::list<int, allocator>;

public:
    explicit program(locality_cell const& cell) : homes_(cell.subsystems())
    {
        parts_.reserve(homes_.size());
        for (home& h : homes_) {
            list& part = parts_.emplace_back(allocator(h.memory.allocator()));
            for (std::size_t i = 0; i < cell.size; ++i)
                part.push_back(static_cast<int>(i));
        }
    }

    /// Moves values between subsystems, `moves` times: from the front of a random subsystem to the
    /// back of another. The subsystems receive values one after another. Only the value moves, so
    /// each list keeps its own nodes.
    void shuffle(std::size_t moves)
    {
        std::uniform_int_distribution<std::size_t> any(0, parts_.size() - 1);
        for (std::size_t i = 0; i < moves; ++i) {
            std::size_t from = any(random_);
            while (parts_[from].empty())
                from = any(random_);
            parts_[from].pop_front();
            parts_[to_].push_back(-9);
            to_ = to_ + 1 == parts_.size() ? 0 : to_ + 1;
        }
    }

    /// Adds one to each element of subsystem `part`, `times` times. Returns the number of elements.
    std::size_t walk(std::size_t part, std::size_t times)
    {
        list& elements = parts_[part];
        for (std::size_t i = 0; i < times; ++i) {
            for (int& element : elements)
                element += 1;
            keep(&elements);
        }
        return elements.size() * times;
    }

    std::size_t size() const noexcept { return parts_.size(); }

private:
    struct home {
        Memory memory{budget{}};
    };

    std::vector<home> homes_;
    std::vector<list> parts_;
    std::size_t to_ = 0;
    std::default_random_engine random_;
};

/// Measures samples of the access phase. Each sample walks over some subsystems. The next sample
/// continues with the subsystems that follow, so that all of them are visited, as in a whole phase.
template <class Memory>
class looker {
public:
    looker(program<Memory>& at, locality_cell const& cell) : at_(at), cell_(cell) {}

    struct seen {
        double ns = 0;     ///< ns of one access: the median of the samples
        double misses = 0; ///< misses of the last-level cache for one access
    };

    bool sees_misses() const noexcept { return misses_.works(); }

    seen look(std::size_t walks)
    {
        warm();
        // Limits the walks of a sample. The limit only has an effect for structures that are too
        // large for any cache.
        walks = std::min(walks, std::max<std::size_t>(1, walk_accesses_max / cell_.size));
        std::size_t const visits = std::max<std::size_t>(1, cell_.accesses / (walks * cell_.size));
        std::array<double, samples> ns{};
        double const misses = misses_.so_far();
        std::size_t all = 0;
        for (double& each : ns) {
            double const from = cpu_ns();
            std::size_t const count = visit(visits, walks);
            each = (cpu_ns() - from) / static_cast<double>(count);
            all += count;
        }
        std::ranges::nth_element(ns, ns.begin() + samples / 2);
        return {ns[samples / 2], (misses_.so_far() - misses) / static_cast<double>(all)};
    }

private:
    static constexpr std::size_t samples = 5;
    static constexpr std::size_t walk_accesses_max = std::size_t{1} << 24;

    // Walks over all lists once, so that the caches have the state in which the phase leaves them.
    void warm()
    {
        for (std::size_t part = 0; part < at_.size(); ++part)
            at_.walk(part, 1);
        next_ = 0;
    }

    std::size_t visit(std::size_t visits, std::size_t walks)
    {
        std::size_t count = 0;
        for (std::size_t i = 0; i < visits || count == 0; ++i) {
            count += at_.walk(next_, walks);
            next_ = next_ + 1 == at_.size() ? 0 : next_ + 1;
        }
        return count;
    }

    program<Memory>& at_;
    locality_cell const& cell_;
    std::size_t next_ = 0;
    cache_misses misses_;
};

} // namespace mallard::bench::lab
