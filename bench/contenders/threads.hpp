// Contenders that several threads may call at the same time. A single-threaded contender can be
// used in two ways: behind a lock, or as one contender for each thread.
#pragma once

#include <bench/contenders/boost.hpp>
#include <bench/entrants.hpp>

#include <mallard/multipool.hpp>
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

#include <boost/lockfree/stack.hpp>

#include <algorithm>
#include <concepts>
#include <deque>
#include <memory>
#include <mutex>

namespace mallard::bench {

/// A pool for one thread, protected by a lock.
template <class C>
class locked {
public:
    static std::string name() { return C::name() + "+mutex"; }

    explicit locked(std::size_t capacity) : blocks_(capacity) {}

    void* allocate()
    {
        std::lock_guard const hold(mutex_);
        return blocks_.allocate();
    }
    void deallocate(void* block)
    {
        std::lock_guard const hold(mutex_);
        blocks_.deallocate(block);
    }

private:
    std::mutex mutex_;
    C blocks_;
};

/// A pool built on Boost's lock-free stack. Boost has no such pool, so a user would have to write
/// this one. The stack needs a node of 16 bytes for each free block.
template <std::size_t Bytes>
class boost_lockfree_pool {
public:
    static std::string name() { return boost_name("lockfree", "/stack"); }

    explicit boost_lockfree_pool(std::size_t) {}

    void* allocate()
    {
        void* block = nullptr;
        return free_.pop(block) ? block : grow();
    }
    void deallocate(void* block) { free_.push(block); }

private:
    static constexpr std::size_t first_bytes = std::size_t{1} << 16;
    static constexpr std::size_t most_bytes = std::size_t{1} << 20;

    void* grow()
    {
        std::lock_guard const hold(growing_);
        void* block = nullptr;
        if (free_.pop(block)) // another thread freed a block since the first test
            return block;
        std::size_t const bytes = next_bytes_;
        std::byte* const chunk = chunks_.emplace_back(new std::byte[bytes]).get();
        next_bytes_ = std::min(bytes * 2, most_bytes);
        free_.reserve(bytes / Bytes);
        for (std::size_t at = bytes - Bytes; at != 0; at -= Bytes)
            free_.push(chunk + at);
        return chunk;
    }

    boost::lockfree::stack<void*> free_{0};
    std::mutex growing_;
    std::size_t next_bytes_ = first_bytes;
    std::deque<std::unique_ptr<std::byte[]>> chunks_;
};

inline const char* word_for(sync how)
{
    switch (how) {
    case sync::none:
        return "none";
    case sync::mutex:
        return "mutex";
    case sync::lock_free:
        return "lock_free";
    case sync::thread_cached:
        return "thread_cached";
    }
    return "";
}

/// Mallard's pool in one threading mode.
template <sync Threads, reuse Order = pool_options{}.order>
struct pool_of_mode {
    template <std::size_t Bytes>
    class of {
    public:
        static std::string name()
        {
            bool const usual = Order == pool_options{}.order;
            return std::string("mallard/") + word_for(Threads) + (usual ? "" : "/lifo");
        }

        static const char* refusal(demand d)
        {
            bool const alone = Threads == sync::none && (d.threads > 1 || d.crosses);
            return alone ? "one thread at a time" : nullptr;
        }

        explicit of(std::size_t capacity) : of(capacity, 1) {}
        // In addition to the blocks that a case keeps, each thread has blocks on their way to other
        // threads. So the capacity is doubled, and 16,384 blocks are added for small cases.
        of(std::size_t capacity, std::size_t threads) : pool_(make(2 * capacity * threads + 16384))
        {
        }

        void* allocate() { return pool_.allocate(); }
        void deallocate(void* block) { pool_.deallocate(block); }

    private:
        static constexpr growth grow =
            Threads == sync::lock_free ? growth::at_run_time() : pool_options{}.grow;
        using pool_type =
            pool<default_heap,
                 pool_options{.block = Bytes, .grow = grow, .threads = Threads, .order = Order}>;

        /// Constructs the pool. A lock-free pool does not grow, so it needs the capacity. The pools
        /// of other threading modes do not use the capacity.
        static pool_type make([[maybe_unused]] std::size_t capacity)
        {
            if constexpr (Threads == sync::lock_free)
                return pool_type(default_heap(), growth::none(pool_type::bytes_for(capacity)));
            else
                return pool_type();
        }

        pool_type pool_;
    };
};

/// Mallard's multipool in one threading mode.
template <sync Threads>
class multipool_of_mode {
public:
    static std::string name() { return std::string("mallard/multipool/") + word_for(Threads); }

    void* allocate(std::size_t bytes, std::size_t align) { return pools_.allocate({bytes, align}); }
    void deallocate(void* block, std::size_t bytes, std::size_t align)
    {
        pools_.deallocate(block, {bytes, align});
    }

private:
    multipool<default_heap, multipool_options{.threads = Threads}> pools_;
};

/// Gives each thread its own contender.
template <class C>
class one_a_thread {
public:
    static std::string name() { return C::name() + "/one-a-thread"; }

    static const char* refusal(demand d)
    {
        return d.crosses ? "a block goes back to the pool of its own thread" : nullptr;
    }

    one_a_thread(std::size_t capacity, std::size_t threads)
    {
        for (std::size_t i = 0; i < threads; ++i)
            blocks_.emplace_back(capacity);
    }

    C& of_thread(std::size_t index) noexcept { return blocks_[index].own; }

private:
    struct alignas(128) apart {
        explicit apart(std::size_t capacity) : own(capacity) {}
        C own;
    };
    std::deque<apart> blocks_;
};

/// Constructs a contender that several threads share.
template <class C>
std::unique_ptr<C> make_shared_by(std::size_t threads, std::size_t capacity)
{
    if constexpr (std::constructible_from<C, std::size_t, std::size_t>)
        return std::make_unique<C>(capacity, threads);
    else if constexpr (std::constructible_from<C, std::size_t>)
        return std::make_unique<C>(capacity);
    else
        return std::make_unique<C>();
}

/// Returns the contender that thread `index` calls.
template <class C>
decltype(auto) of_thread(C& blocks, std::size_t index) noexcept
{
    if constexpr (requires { blocks.of_thread(index); })
        return (blocks.of_thread(index));
    else
        return (blocks);
}

} // namespace mallard::bench
