// Instantiates every member of the debugging adaptors, so that compilers and clang-tidy see all of
// them.
#include <mallard/mallard.hpp>

namespace mallard {

constexpr checked_options shared_with_calls{.frames = 8, .shared = true};
constexpr guarded_options sampled_and_shared{.one_in = 1000, .shared = true};
constexpr guarded_options in_front{.side = guard_at::begin, .one_in = 2, .frames = 1};

template class checked<>;
template class checked<arena<>>;
template class checked<pages<>, shared_with_calls>;
template class guarded<>;
template class guarded<multipool<>, sampled_and_shared>;
template class guarded<multipool<>, in_front>;
template class traced<>;
template class traced<arena<>>;
template class traced<pool<>, void (*)(const mallard_trace_record&)>;

} // namespace mallard
