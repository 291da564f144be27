#include <bench/lab/growth.hpp>

namespace mallard::bench::lab {

void growth(task const& asked, figures out)
{
    growth_cell const cell{.structure = asked.numbers[0],
                           .size = asked.numbers[1],
                           .elements = asked.numbers[2],
                           .how = static_cast<form>(asked.numbers[3]),
                           .litter = asked.numbers[4]};
    bool found = false;
    grow_as const asked_for{asked.who, cell, out, found};
    for (auto const grow_those :
         {grow_on_heap, grow_in_arena, grow_in_multipool, grow_in_multipool_over_arena,
          grow_behind_abstract_base, grow_in_boost, grow_in_foonathan})
        grow_those(asked_for);
    if (!found)
        throw not_played("no program runs that strategy");
}

} // namespace mallard::bench::lab
