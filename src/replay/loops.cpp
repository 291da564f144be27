// Chooses the loop for the options of a replay.
#include "loop.hpp"

namespace mallard::replay {
namespace {

template <class Calls, class Pace>
auto loop_of(touch touched) noexcept
{
    switch (touched) {
    case touch::none:
        return &loop<Calls, touch_nothing, Pace>::run;
    case touch::all:
        return &loop<Calls, touch_all, Pace>::run;
    case touch::page:
        break;
    }
    return &loop<Calls, touch_pages, Pace>::run;
}

} // namespace

loop_function loop_for(options const& chosen) noexcept
{
    if (chosen.mode == mode::hash)
        return &loop<hashed_calls, touch_nothing, no_pace>::run;
    bool const is_paced = chosen.pace != 0;
    if (chosen.mode == mode::no_op)
        return is_paced ? loop_of<no_calls, recorded_pace>(chosen.touch)
                        : loop_of<no_calls, no_pace>(chosen.touch);
    return is_paced ? loop_of<real_calls, recorded_pace>(chosen.touch)
                    : loop_of<real_calls, no_pace>(chosen.touch);
}

} // namespace mallard::replay
