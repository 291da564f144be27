// Random programs over a pool or a multipool, compared with a model.
#pragma once

#include "choices.hpp"
#include "model.hpp"
#include "sources.hpp"
#include "subject.hpp"

namespace mallard::testing {

/// Runs a random program, and verifies after each step:
/// - Blocks do not overlap, are aligned, are inside chunks of the source, and keep their bytes.
/// - A failure has a reason and changes nothing.
/// - The subject and the model agree on every address and on the totals.
///
/// The subject gets memory only from `source`, and at most `limit` bytes, without counting large
/// blocks.
template <class Choices>
class program {
public:
    program(failing_source& source, Choices& choose, subject& of, std::size_t limit = bytes_max)
        : source_(source), choose_(choose), subject_(of), limit_(limit)
    {
    }

    void run(std::size_t steps)
    {
        while (steps-- > 0 && choose_.more())
            step();
        verify();
    }

private:
    static constexpr std::size_t blocks_max = 5000;

    void step()
    {
        failures_before_ = source_.failures();
        switch (choose_(32)) {
        default:
            return allocate();
        case 10:
        case 11:
        case 12:
            return growing_ ? allocate_many() : deallocate_many();
        case 13:
            return growing_ ? deallocate_many() : allocate_many();
        case 14:
            return void(growing_ = choose_(8) != 0 && blocks_.count() < blocks_max);
        case 15:
        case 16:
        case 17:
        case 18:
        case 19:
        case 20:
        case 21:
        case 22:
        case 23:
            return deallocate();
        case 24:
        case 25:
            return classify();
        case 26:
            return choose_(8) == 0 ? fail_now_and_then() : source_.fail_never();
        case 27:
            return choose_(16) == 0 ? verify() : verify_totals();
        case 28:
            return choose_(16) == 0 ? subject_.trim(choose_(1 << choose_(20))) : void();
        case 29:
            return choose_(32) == 0 ? forget_all() : void();
        case 30:
            return choose_(16) == 0 ? move() : void();
        }
    }

    // Chooses mostly small sizes, and sometimes a size larger than any class or than the address
    // space.
    layout some_layout()
    {
        constexpr std::size_t ends[] = {2, 65, 65, 257, 257, 1025, 4097, 20000};
        std::size_t const align = std::size_t{1} << (choose_(8) == 0 ? choose_(14) : choose_(5));
        switch (choose_(512)) {
        case 0:
            return {bytes_max + 2 - choose_(8192), align};
        case 1:
            return {std::numeric_limits<std::size_t>::max() - choose_(8192), align};
        case 2:
            return {choose_(100), std::size_t{1} << 21};
        default:
            return {choose_(ends[choose_(std::size(ends))]), align};
        }
    }
    bool either() { return choose_(2) == 0; }
    std::size_t many() { return choose_(64) == 0 ? 0 : 1 + choose_(std::size_t{1} << choose_(10)); }

    void allocate()
    {
        auto const single = subject_.single();
        if (single && choose_(8) != 0)
            return expect(subject_.allocate_single(either()), *single);
        layout const l = some_layout();
        expect(subject_.allocate(l, either()), l);
    }

    void allocate_many()
    {
        std::vector<void*> blocks(many());
        layout const l = subject_.single().value_or(some_layout());
        if (!subject_.single())
            std::generate(blocks.begin(), blocks.end(),
                          [&] { return subject_.allocate(l, either()); });
        else if (!subject_.allocate_batch(blocks, either()))
            return expect(nullptr, l);
        for (void* const block : blocks)
            expect(block, l);
    }

    void expect(void* block, layout l)
    {
        if (block != nullptr) {
            require(source_.holds(block, l.bytes), "a block is in the source's memory");
            blocks_.add(block, l);
        } else {
            require(source_.failures() != failures_before_ || l.bytes > bytes_max / 2 ||
                        limit_ != bytes_max,
                    "a refusal has a reason");
        }
    }

    void deallocate()
    {
        if (blocks_.empty())
            return;
        // Chooses the newest block in half of the cases, as in real programs.
        void* const block = blocks_[either() ? blocks_.count() - 1 : choose_(blocks_.count())];
        layout const l = blocks_.remove(block);
        l == subject_.single() && either() ? subject_.deallocate_single(block)
                                           : subject_.deallocate(block, l);
    }

    void deallocate_many()
    {
        std::size_t count = std::min(many(), blocks_.count());
        if (!subject_.single()) {
            for (; count > 0; --count)
                deallocate();
            return;
        }
        std::vector<void*> freed;
        for (; count > 0; --count)
            if (void* const block = blocks_[choose_(blocks_.count())];
                subject_.is_pooled(blocks_.layout_at(block))) {
                blocks_.remove(block);
                freed.push_back(block);
            }
        subject_.deallocate_batch(freed);
    }

    void classify()
    {
        int const on_stack = 0;
        require(!subject_.owns(&on_stack) && !subject_.owns(nullptr),
                "foreign addresses are not owned");
        require(subject_.classify(&on_stack) == validity::miss, "foreign addresses are a miss");
        if (blocks_.empty())
            return;
        auto* const block = static_cast<std::byte*>(blocks_[choose_(blocks_.count())]);
        layout const l = blocks_.layout_at(block);
        require(subject_.owns(block), "a block in use is owned");
        if (!subject_.is_pooled(l))
            return;
        require(subject_.classify(block) == validity::valid, "a block in use is valid");
        if (l.bytes > 1) {
            std::byte* const inside = block + 1 + choose_(l.bytes - 1);
            require(subject_.owns(inside), "the inside of a block is owned");
            require(subject_.classify(inside) == validity::invalid, "and not a block");
        }
        if (choose_(4) == 0) {
            subject_.deallocate(block, blocks_.remove(block));
            require(subject_.classify(block) == validity::invalid, "a freed block is invalid");
        }
    }

    void fail_now_and_then()
    {
        switch (choose_(3)) {
        case 0:
            return source_.fail_every(1 + choose_(4));
        case 1:
            return source_.fail_at(1 + choose_(4));
        case 2:
            return source_.fail_above(std::size_t{1} << choose_(20));
        }
    }

    void forget_all()
    {
        either() ? subject_.reset() : subject_.release();
        blocks_.clear();
        verify_totals();
    }

    void move()
    {
        subject_.move([](subject& moved_from) {
            require(moved_from.stats().blocks_live == 0, "a moved-from allocator is empty");
            if (void* const block = moved_from.allocate({8}, false))
                moved_from.deallocate(block, {8});
        });
        verify_totals();
    }

    void verify_totals() const
    {
        statistics const s = subject_.stats();
        require(s.blocks_live == blocks_.count(), "blocks are counted");
        require(s.bytes_live + s.bytes_idle <= s.bytes_taken,
                "live and idle bytes are at most the bytes taken");
        if (subject_.counts_source_bytes())
            require(s.bytes_taken == source_.bytes(), "taken bytes are counted");
        require(source_.bytes() <= limit_ || has_large(), "the limit holds");
    }

    bool has_large() const
    {
        return !blocks_.ascending([&](layout l) { return !subject_.is_pooled(l); }).empty();
    }

    void verify()
    {
        blocks_.verify();
        verify_totals();
        if (subject_.single())
            require(subject_.in_use() ==
                        blocks_.ascending([&](layout l) { return subject_.is_pooled(l); }),
                    "each block in use is seen once, in address order");
    }

    failing_source& source_;
    Choices& choose_;
    subject& subject_;
    model blocks_;
    std::size_t limit_;
    std::size_t failures_before_ = 0;
    bool growing_ = true;
};

} // namespace mallard::testing
