// error: counter_|no matching|no viable|deduc
#include <mallard/adapt/counted.hpp>
#include <mallard/arena.hpp>

void count(mallard::arena<>& scratch)
{
    mallard::counting_scope stretch(scratch);
}
