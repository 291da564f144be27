// A pool of connections that several threads check out and return. A connection is opened when it
// is first needed, up to a limit. It is closed when the pool of connections is destroyed.
//
// The memory of the connections is in an object_pool, whose hooks open and close them. A box owns a
// connection. The connection is idle, or exactly one thread uses it.
#include <mallard/object_pool.hpp>
#include <mallard/sync.hpp>

#include <atomic>
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

struct connection {
    int number;
    long queries = 0;
    bool open = false;
};

/// Hooks in which a program would log in and out. Several threads may call them at the same time.
struct log_in_and_out {
    std::atomic<int>* open;
    std::atomic<long>* queries;

    void acquired(connection& c)
    {
        c.open = true;
        ++*open;
    }
    void released(connection& c) noexcept
    {
        *queries += c.queries;
        c.open = false;
        --*open;
    }
};

namespace {

class connections {
    using pool = mallard::object_pool<connection, mallard::default_heap,
                                      mallard::object_pool_options{.threads = mallard::sync::mutex},
                                      log_in_and_out>;

public:
    connections(int most, log_in_and_out hooks)
        : pool_({}, nullptr, hooks), may_open_(most), most_(most)
    {
    }

    /// Checks a connection out in the constructor, and returns it in the destructor. The
    /// constructor waits while all connections are checked out.
    class lease {
    public:
        explicit lease(connections& from) : from_(from), box_(from.check_out()) {}
        lease(const lease&) = delete;
        lease& operator=(const lease&) = delete;
        ~lease() { from_.check_in(std::move(box_)); }
        connection* operator->() const { return box_.get(); }

    private:
        connections& from_;
        pool::box box_;
    };

    /// Closes the idle connections.
    void close_idle()
    {
        std::vector<pool::box> idle;
        std::lock_guard const alone(lock_);
        idle.swap(idle_);
        may_open_ += static_cast<int>(idle.size());
    }

private:
    pool::box check_out()
    {
        std::unique_lock held(lock_);
        changed_.wait(held, [this] { return !idle_.empty() || may_open_ > 0; });
        if (idle_.empty()) {
            auto fresh = pool_.make(most_ - may_open_); // if make throws, nothing has changed
            --may_open_;
            return fresh;
        }
        pool::box last = std::move(idle_.back()); // most likely still in the cache
        idle_.pop_back();
        return last;
    }

    void check_in(pool::box mine)
    {
        {
            std::lock_guard const alone(lock_);
            idle_.push_back(std::move(mine));
        }
        changed_.notify_one();
    }

    pool pool_; // declared first, because the boxes must be destroyed before it
    std::mutex lock_;
    std::condition_variable changed_;
    std::vector<pool::box> idle_;
    int may_open_;
    int most_;
};

} // namespace

int main()
{
    std::atomic<int> open = 0;
    std::atomic<long> queries = 0;
    {
        connections database(3, {&open, &queries});
        assert(open == 0); // no connection is opened before it is needed
        std::vector<std::jthread> threads;
        for (int i = 0; i < 6; ++i)
            threads.emplace_back([&] {
                for (int query = 0; query < 1000; ++query) {
                    connections::lease const mine(database);
                    assert(mine->open && mine->number < 3);
                    ++mine->queries; // no other thread has this connection
                }
            });
        threads.clear();
        assert(open >= 1 && open <= 3);
        database.close_idle();
        assert(open == 0);
        assert(connections::lease(database)->queries == 0); // a new connection
        assert(open == 1);
    }
    assert(open == 0 && queries == 6000);
    std::puts("6000 queries over 3 connections at most");
}
