// error: nodiscard|ignoring temporary
#include <mallard/persist/protected_pages.hpp>

#pragma GCC diagnostic error "-Wunused-result"
#pragma GCC diagnostic error "-Wunused-value"

void reload(mallard::protected_pages<>& pages)
{
    mallard::unsealed{pages}; // is destroyed immediately
}
