// Mallard's allocators, in each form that a user may choose.
#pragma once

#include <bench/barrier.hpp>
#include <bench/contenders/std_pmr.hpp>

#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <mallard/pages.hpp>
#include <mallard/pmr.hpp>
#include <mallard/pool.hpp>

#include <span>
#include <string>

namespace mallard::bench {

/// A pool whose block size is part of its type. This is the fastest form.
template <reuse Order, check Checks = check::off>
struct pool_of_constant {
    template <std::size_t Bytes>
    class of {
    public:
        static std::string name()
        {
            return std::string("mallard/none/") + (Order == reuse::lifo ? "lifo" : "ordered") +
                   (Checks == check::on ? "/checked" : "");
        }

        explicit of(std::size_t) {}

        void* allocate() { return pool_.allocate(); }
        void deallocate(void* block) { pool_.deallocate(block); }

    private:
        pool<default_heap, pool_options{.block = Bytes, .order = Order, .checks = Checks}> pool_;
    };
};

/// A pool whose block size is a constructor argument. With `ordered` the type is `pool<>`, which is
/// the default.
template <reuse Order>
struct pool_of_runtime {
    template <std::size_t Bytes>
    class of {
    public:
        static std::string name()
        {
            return Order == reuse::lifo ? "mallard/none/lifo/runtime"
                                        : "mallard/none/ordered/plain";
        }

        explicit of(std::size_t) {}

        void* allocate() { return pool_.allocate(); }
        void deallocate(void* block) { pool_.deallocate(block); }

    private:
        pool<default_heap, pool_options{.order = Order}> pool_{keep(Bytes)};
    };
};

/// Growth options for very many blocks: huge pages, reserved in chunks of at least 2 MiB.
inline constexpr growth huge_growth{.first = huge_page_bytes, .max = 16 * huge_page_bytes};
using huge_pages = pages<pages_options{.huge = huge::madvise}>;

template <reuse Order>
struct pool_of_huge_pages {
    template <std::size_t Bytes>
    class of {
    public:
        static std::string name()
        {
            return Order == reuse::lifo ? "mallard/none/lifo/huge-pages"
                                        : "mallard/none/ordered/huge-pages";
        }

        explicit of(std::size_t) {}

        void* allocate() { return pool_.allocate(); }
        void deallocate(void* block) { pool_.deallocate(block); }

    private:
        pool<huge_pages, pool_options{.block = Bytes, .grow = huge_growth, .order = Order}> pool_;
    };
};

/// A pool called through `std::pmr::memory_resource`.
template <reuse Order>
struct pool_of_pmr {
    template <std::size_t Bytes>
    class of {
        using resource =
            pmr_resource<pool<default_heap, pool_options{.block = Bytes, .order = Order}>>;

    public:
        static std::string name()
        {
            return Order == reuse::lifo ? "mallard/none/lifo/pmr" : "mallard/none/ordered/pmr";
        }

        explicit of(std::size_t) {}

        void* allocate() { return pool_.allocate(Bytes, alignment); }
        void deallocate(void* block) { pool_.deallocate(block, Bytes, alignment); }

    private:
        static constexpr std::size_t alignment = Bytes % 16 == 0 ? 16 : 8;

        behind_base<resource> pool_;
    };
};

template <std::size_t MinAlign>
class arena_contender {
public:
    static std::string name()
    {
        return MinAlign == 1 ? "mallard/arena"
                             : "mallard/arena/min-align-" + std::to_string(MinAlign);
    }

    explicit arena_contender(std::span<std::byte> initial, std::size_t = 0) : arena_(initial) {}

    void* allocate(std::size_t bytes, std::size_t align) { return arena_.allocate({bytes, align}); }
    void deallocate(void* block, std::size_t bytes, std::size_t align)
    {
        arena_.deallocate(block, {bytes, align});
    }
    void reset() { arena_.reset(); }

    bool try_expand(void* block, std::size_t from, std::size_t to, std::size_t align)
    {
        return arena_.try_expand(block, {from, align}, {to, align});
    }

    using arena_type = arena<default_heap, arena_options{.min_align = MinAlign}>;
    using mark_type = typename arena_type::mark_type;
    mark_type mark() const { return arena_.mark(); }
    void rewind(mark_type to) { arena_.rewind(to); }

    template <class T>
    mallard::allocator<T, arena_type> allocator()
    {
        return arena_;
    }

private:
    arena_type arena_;
};

class huge_arena {
public:
    static std::string name() { return "mallard/arena/huge-pages"; }

    explicit huge_arena(std::span<std::byte> initial, std::size_t = 0) : arena_(initial) {}

    void* allocate(std::size_t bytes, std::size_t align) { return arena_.allocate({bytes, align}); }

private:
    arena<huge_pages, arena_options{.grow = huge_growth}> arena_;
};

class arena_pmr : public behind_base<pmr_resource<arena<>>> {
public:
    static std::string name() { return "mallard/arena/pmr"; }

    explicit arena_pmr(std::span<std::byte> initial, std::size_t = 0) : behind_base(initial) {}

    void reset() { resource().reset(); }
};

struct plain_multipool_tag {
    using type = multipool<>;
    static std::string name() { return "mallard/multipool"; }
};
struct arena_multipool_tag {
    using type = multipool<arena<>>;
    static std::string name() { return "mallard/multipool/arena"; }
};
struct ordered_multipool_tag {
    using type = multipool<default_heap, multipool_options{.chunk = std::size_t{1} << 14,
                                                           .grow = {.first = std::size_t{1} << 14,
                                                                    .max = std::size_t{1} << 16},
                                                           .order = reuse::ordered}>;
    static std::string name() { return "mallard/multipool/ordered"; }
};

template <class Tag>
class multipool_contender {
public:
    static std::string name() { return Tag::name(); }

    void* allocate(std::size_t bytes, std::size_t align = 8)
    {
        return pools_.allocate({bytes, align});
    }
    void deallocate(void* block, std::size_t bytes, std::size_t align = 8)
    {
        pools_.deallocate(block, {bytes, align});
    }

    template <class T>
    mallard::allocator<T, typename Tag::type> allocator()
    {
        return pools_;
    }

private:
    typename Tag::type pools_;
};

template <class Tag>
class multipool_pmr : public behind_base<pmr_resource<typename Tag::type>> {
public:
    static std::string name() { return Tag::name() + "/pmr"; }
};

} // namespace mallard::bench
