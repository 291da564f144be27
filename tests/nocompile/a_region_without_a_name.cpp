// error: nodiscard|ignoring temporary
#include <mallard/trace/region.h>

#pragma GCC diagnostic error "-Wunused-result"
#pragma GCC diagnostic error "-Wunused-value"

void parse()
{
    mallard::region{"parse"}; // is destroyed immediately
}
