// Random programs over several heaps. A model knows the live blocks of each heap.
#include "../support/choices.hpp"
#include "../support/length.hpp"
#include "../support/require.hpp"

#include <mallard/heap.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace {

using mallard::testing::require;

struct block {
    unsigned char* data;
    std::size_t bytes;
    unsigned char pattern;
};

/// A heap, and the blocks that the heap must hold.
struct subject {
    mallard_heap* heap;
    std::vector<block> live;
};

void check(const block& b)
{
    for (std::size_t i = 0; i < b.bytes; i += 1 + b.bytes / 64)
        require(b.data[i] == b.pattern, "a block keeps what was written to it");
}

class program {
public:
    explicit program(std::uint64_t seed) : choose_(seed)
    {
        for (int i = 0; i < 4; ++i)
            subjects_.push_back({fresh(), {}});
    }
    program(const program&) = delete;
    program& operator=(const program&) = delete;
    ~program()
    {
        for (subject const& s : subjects_)
            mallard_heap_destroy(s.heap);
    }

    void run(int steps)
    {
        while (steps-- != 0) {
            subject& s = subjects_[choose_(subjects_.size())];
            step(s, choose_(1000));
        }
        for (subject const& s : subjects_)
            for (block const& b : s.live)
                check(b);
    }

private:
    mallard_heap* fresh()
    {
        mallard_heap_options o{};
        o.struct_bytes = sizeof o;
        o.threads = choose_(2) != 0 ? MALLARD_HEAP_SHARED : MALLARD_HEAP_CONFINED;
        return mallard_heap_create(&o);
    }

    std::size_t bytes()
    {
        std::size_t const most[] = {64, 64, 1024, 1024, 1024, 1024, 20000, 300000};
        return choose_(choose_(200) == 0 ? 3 << 20 : most[choose_(std::size(most))]) + 1;
    }

    void add(subject& s, void* data, std::size_t bytes)
    {
        require(data != nullptr, "an allocation succeeds");
        block const b{static_cast<unsigned char*>(data), bytes,
                      static_cast<unsigned char>(choose_(256))};
        std::memset(b.data, b.pattern, bytes);
        s.live.push_back(b);
    }

    block take_out(subject& s)
    {
        std::swap(s.live[choose_(s.live.size())], s.live.back());
        block const b = s.live.back();
        s.live.pop_back();
        check(b);
        return b;
    }

    void allocate(subject& s, std::size_t way)
    {
        std::size_t const n = bytes();
        if (way == 0) {
            std::size_t const align = std::size_t{1} << choose_(17);
            add(s, mallard_heap_allocate_aligned(s.heap, n, align), n);
            require(reinterpret_cast<std::uintptr_t>(s.live.back().data) % align == 0,
                    "an alignment is honoured");
        } else if (way == 1) {
            auto* const data = static_cast<unsigned char*>(mallard_heap_calloc(s.heap, 1, n));
            for (std::size_t i = 0; i < n; ++i)
                require(data[i] == 0, "calloc clears");
            add(s, data, n);
        } else {
            add(s, mallard_heap_allocate(s.heap, n), n);
        }
    }

    void reallocate(subject& s)
    {
        block b = take_out(s);
        std::size_t const n = bytes();
        b.data = static_cast<unsigned char*>(mallard_realloc(b.data, n));
        b.bytes = std::min(b.bytes, n);
        check(b);
        require(mallard_heap_owns(s.heap, b.data) != 0, "a block stays in its heap");
        std::memset(b.data, b.pattern, n);
        b.bytes = n;
        s.live.push_back(b);
    }

    void count(subject& s)
    {
        mallard_heap_statistics found{};
        found.struct_bytes = sizeof found;
        require(mallard_heap_stats(s.heap, &found) == 0, "statistics are available");
        std::size_t bytes = 0;
        for (block const& b : s.live) {
            bytes += mallard_usable_size(b.data);
            require(mallard_usable_size(b.data) >= b.bytes, "a block is as large as requested");
        }
        require(found.blocks_live == s.live.size(), "all blocks are counted");
        require(found.bytes_live == bytes, "all bytes are counted");
        require(found.bytes_taken >= bytes, "live bytes are at most the taken bytes");
    }

    void step(subject& s, std::size_t what)
    {
        if (what < 550 && s.live.size() < 2000)
            return allocate(s, choose_(8));
        if (what < 5 + 550)
            return mallard_heap_trim(s.heap, choose_(2) << 20);
        if (what < 560)
            return count(s);
        if (what < 562) {
            if (choose_(2) != 0)
                mallard_heap_reset(s.heap);
            else
                mallard_heap_release(s.heap);
            return s.live.clear();
        }
        if (what < 563) {
            mallard_heap_destroy(s.heap);
            s = {fresh(), {}};
            return;
        }
        if (s.live.empty())
            return;
        if (what < 640)
            return reallocate(s);
        block const b = take_out(s);
        if (what < 800)
            mallard_heap_free(s.heap, b.data);
        else
            mallard_free(b.data);
    }

    mallard::testing::seeded choose_;
    std::vector<subject> subjects_;
};

TEST(several_heaps, agree_with_a_model_in_random_programs)
{
    for (std::uint64_t seed = 1; seed <= mallard::testing::repeated(20, 2); ++seed) {
        mallard::testing::doing = "seed " + std::to_string(seed);
        program(seed).run(5000);
    }
    mallard::testing::doing.clear();
}

} // namespace
