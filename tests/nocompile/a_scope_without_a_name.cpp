// error: nodiscard|ignoring temporary
#include <mallard/arena.hpp>

#pragma GCC diagnostic error "-Wunused-result"
#pragma GCC diagnostic error "-Wunused-value"

void parse(mallard::arena<>& frame)
{
    mallard::scope{frame}; // is destroyed immediately
}
