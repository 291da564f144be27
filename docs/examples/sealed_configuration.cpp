// A configuration that is built once, and is then read-only for the whole process.
#include <mallard/arena.hpp>
#include <mallard/persist/protected_pages.hpp>

#include <cassert>
#include <cstdio>
#include <string_view>

struct route {
    std::string_view host;
    int port;
    const route* next;
};

int main()
{
    mallard::arena<mallard::protected_pages<>> settings;
    const route* routes = nullptr;
    for (std::string_view const host : {"db", "cache", "queue"})
        routes = &settings.make<route>(settings.copy(host), 5000, routes);
    if (!settings.upstream().seal()) // from here on a stray write stops the process
        std::puts(settings.upstream().last_failure());

    assert(routes->host == "queue" && routes->next->host == "cache");
    assert(settings.upstream().is_sealed());
    assert(settings.try_allocate({1 << 20}) == nullptr); // sealed pages do not grow

    {
        mallard::unsealed const writable(settings.upstream()); // writable until the brace
        routes = &settings.make<route>(settings.copy("log"), 5140, routes);
    }
    assert(settings.upstream().is_sealed() && routes->port == 5140);
}
