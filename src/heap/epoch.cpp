// What becomes of memory that nobody has wanted for an epoch.
#include "epoch.hpp"

#include "central.hpp"
#include "park.hpp"
#include "pressure.hpp"
#include "remote.hpp"

namespace mallard::engine {
namespace {

constinit std::atomic<std::uint64_t> aged_last{0};

} // namespace

void look_at_clock(front& f) noexcept
{
    std::uint64_t const now = os::coarse_milliseconds();
    if (now - f.epoch < epoch_milliseconds)
        return;
    f.epoch = now;
    bring_back(f);
    send_all(f);
    shrink_idle(f);
    std::uint64_t last = aged_last.load(std::memory_order_relaxed);
    if (now - last < epoch_milliseconds ||
        !aged_last.compare_exchange_strong(last, now, std::memory_order_relaxed))
        return;
    visit_parked();
    bool const is_short = memory_is_short(now);
    the_central.expect_shortage(is_short);
    the_central.age();
    if (is_short) // what is idle does not wait for its second epoch
        the_central.trim(0);
}

} // namespace mallard::engine
