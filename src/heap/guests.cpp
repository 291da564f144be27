// Scoped locks, which do not wait for a thread that holds the lock across a fork (see guests.hpp).
#include "guests.hpp"

namespace mallard::engine {

constinit os::lock guests;

void access::take() noexcept
{
    for (;;) {
        is_guest_ = !lock_.take_unless_kept();
        if (!is_guest_) [[likely]]
            return;
        guests_.take();
        if (lock_.is_kept())
            return;
        guests_.give(); // the fork is over
    }
}

void access::give() noexcept
{
    (is_guest_ ? guests_ : lock_).give();
}

} // namespace mallard::engine
