// Forks of a process whose threads use the engine of malloc meanwhile: the child goes on.
#include "../support/asan.hpp"
#include "../support/child.hpp"
#include "../support/engine_program.hpp"
#include "../support/threads.hpp"

#include <gtest/gtest.h>

#include <pthread.h>

namespace {

using namespace mallard::testing;
namespace engine = mallard::engine;

constexpr std::size_t workers = 3;
std::size_t const forks = __tsan_init == nullptr ? 40 : 15; // slow with a shadow to copy

/// A sanitizer's own malloc does not survive a fork beside threads that come and go.
bool threads_may_come()
{
    return __tsan_init == nullptr && !has_asan();
}

/// A thread that is in its end, in the round of destructors in which it has no front any
/// more: its calls go to the one that all such threads share.
class late_worker {
public:
    late_worker()
    {
        ::pthread_key_create(&key_, [](void* self) { static_cast<late_worker*>(self)->end(); });
        thread_ = std::jthread([this] {
            engine::deallocate(engine::allocate(100));
            ::pthread_setspecific(key_, this);
        });
    }
    ~late_worker()
    {
        stop_ = true;
        thread_.join();
        ::pthread_key_delete(key_);
    }

private:
    void end()
    {
        if (++round_ < 3) {
            ::pthread_setspecific(key_, this);
            return;
        }
        require(engine::shown_front()->is_none(), "its front is parked");
        engine_user user(99);
        while (!stop_)
            user.end(user.make());
    }

    std::atomic<bool> stop_ = false;
    int round_ = 0;
    pthread_key_t key_{};
    std::jthread thread_;
};

TEST(engine_forks, find_a_child_that_goes_on)
{
    engine_market market(64);
    std::atomic<bool> stop = false;
    {
        late_worker late;
        std::vector<std::jthread> threads;
        for (std::size_t number = 0; number < workers; ++number)
            threads.emplace_back([&, number] {
                for (std::size_t i = 0; !stop; ++i) {
                    // Now and then a thread of its own, so that fronts are parked and taken.
                    auto const work = [&] {
                        engine_user user(number << 32 | i);
                        market.trade(user, 20);
                    };
                    if (i % 4 == 0 && threads_may_come())
                        in_a_thread(work);
                    else
                        work();
                    engine::visit_parked();
                    engine::the_central.age();
                }
            });
        for (std::size_t i = 0; i < forks; ++i)
            EXPECT_EQ(in_a_child([&] {
                          engine_user user(i);
                          engine_market own(32);
                          own.trade(user, 300);
                          engine::visit_parked();
                          engine::the_central.trim(0);
                          if (!threads_may_come())
                              return;
                          in_threads(2, [&](std::size_t number) {
                              engine_user other(i + number);
                              own.trade(other, 100);
                          });
                      }),
                      "fine");
        stop = true;
    }
}

} // namespace
