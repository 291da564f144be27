// Uses the component persist, whose pages come from the component core.
#include <mallard/arena.hpp>
#include <mallard/persist/protected_pages.hpp>

int main()
{
    mallard::arena<mallard::protected_pages<>> settings;
    settings.make<int>(7);
    return settings.upstream().seal() ? 0 : 1;
}
