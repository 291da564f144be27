// error: nodiscard|ignoring temporary
#include <mallard/adapt/counted.hpp>
#include <mallard/multipool.hpp>

#pragma GCC diagnostic error "-Wunused-result"
#pragma GCC diagnostic error "-Wunused-value"

void parse(mallard::counted<mallard::multipool<>>& memory)
{
    mallard::counting_scope{memory}; // is destroyed immediately
}
