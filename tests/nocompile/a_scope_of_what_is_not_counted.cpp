// error: tally_|no matching|no viable|deduc
#include <mallard/arena.hpp>
#include <mallard/counted.hpp>

void count(mallard::arena<>& scratch)
{
    mallard::counting_scope stretch(scratch);
}
