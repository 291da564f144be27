// A type-erased pool or multipool, so that a long program over many types is compiled only once.
#pragma once

#include <mallard/multipool.hpp>
#include <mallard/pool.hpp>

#include <optional>
#include <vector>

namespace mallard::testing {

class subject {
public:
    virtual ~subject() = default;

    /// Returns the layout of the blocks of a pool, or no value for a multipool. Only a pool
    /// supports batches and `in_use`.
    virtual std::optional<layout> single() const = 0;
    virtual bool is_pooled(layout) const = 0;

    /// Allocates with `allocate` or `try_allocate`. Returns null on failure.
    virtual void* allocate(layout, bool throws) = 0;
    virtual void* allocate_single(bool throws) = 0;
    virtual bool allocate_batch(std::span<void*>, bool throws) = 0;
    virtual void deallocate(void*, layout) = 0;
    virtual void deallocate_single(void*) = 0;
    virtual void deallocate_batch(std::span<void* const>) = 0;

    virtual bool owns(const void*) const = 0;
    virtual validity classify(const void*) const = 0;
    virtual std::vector<void*> in_use() = 0;
    virtual statistics stats() const = 0;
    /// Returns whether stats().bytes_taken equals the bytes that the source has supplied.
    virtual bool counts_source_bytes() const = 0;

    virtual void reset() = 0;
    virtual void release() = 0;
    virtual void trim(std::size_t keep) = 0;
    /// Moves the allocator to another object and back. In between, calls `meanwhile` with the
    /// moved-from allocator.
    virtual void move(void (*meanwhile)(subject&)) = 0;
};

template <class A>
class subject_of final : public subject {
    static constexpr bool has_single = requires(A& a) { a.block_bytes(); };

public:
    template <class Make>
    explicit subject_of(Make make) : a_(make())
    {
    }

    std::optional<layout> single() const override
    {
        if constexpr (has_single)
            return layout(a_.block_bytes(), a_.block_align());
        else
            return {};
    }
    bool is_pooled(layout l) const override
    {
        if constexpr (has_single)
            return l.bytes <= a_.block_bytes() && l.align <= a_.block_align();
        else
            return l.align <= cache_line_bytes && l.bytes <= a_.largest() &&
                   align_up(std::max(l.bytes, std::size_t{1}), l.align) <= a_.largest();
    }

    void* allocate(layout l, bool throws) override
    {
        return throws ? or_null([&] { return a_.allocate(l); }) : a_.try_allocate(l);
    }
    void* allocate_single(bool throws) override
    {
        if constexpr (has_single)
            return throws ? or_null([&] { return a_.allocate(); }) : a_.try_allocate();
        else
            return nullptr;
    }
    bool allocate_batch(std::span<void*> out, bool throws) override
    {
        if constexpr (has_single) {
            auto const all = [&] { return a_.allocate_batch(out), static_cast<void*>(this); };
            return throws ? or_null(all) != nullptr : a_.try_allocate_batch(out);
        } else {
            return out.empty();
        }
    }
    void deallocate(void* block, layout l) override { a_.deallocate(block, l); }
    void deallocate_single(void* block) override
    {
        if constexpr (has_single)
            a_.deallocate(block);
    }
    void deallocate_batch(std::span<void* const> blocks) override
    {
        if constexpr (has_single)
            a_.deallocate_batch(blocks);
    }

    bool owns(const void* p) const override { return a_.owns(p); }
    validity classify(const void* p) const override { return a_.classify(p); }
    std::vector<void*> in_use() override
    {
        std::vector<void*> blocks;
        if constexpr (has_single)
            a_.for_each([&](void* block) { blocks.push_back(block); });
        return blocks;
    }
    statistics stats() const override { return a_.stats(); }
    bool counts_source_bytes() const override
    {
        return requires(A& a) { a.upstream().give(chunk{}); };
    }

    void reset() override { a_.reset(); }
    void release() override { a_.release(); }
    void trim(std::size_t keep) override { a_.trim(keep); }
    void move(void (*meanwhile)(subject&)) override
    {
        if constexpr (std::movable<A>) {
            A other(std::move(a_));
            meanwhile(*this);
            a_ = std::move(other);
        }
    }

private:
    template <class F>
    static void* or_null(F f)
    {
        try {
            return f();
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    }

    A a_;
};

} // namespace mallard::testing
