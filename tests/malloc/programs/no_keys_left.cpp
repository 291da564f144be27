// Creates keys of thread-specific data until none is left, before the first call of malloc. New
// threads must nevertheless use the memory of exited threads again.
#include "check.hpp"

#include <cstdio>
#include <cstdlib>

#include <pthread.h>

namespace {

/// Returns the number of resident pages. Calls no function that allocates.
long resident_pages()
{
    static char buffer[BUFSIZ];
    std::FILE* const file = std::fopen("/proc/self/statm", "r");
    std::setvbuf(file, buffer, _IOFBF, sizeof buffer);
    long total = 0, resident = 0;
    mallard::testing::check(std::fscanf(file, "%ld %ld", &total, &resident) == 2,
                            "memory is known");
    std::fclose(file);
    return resident;
}

void* work(void*)
{
    for (std::size_t i = 1; i < 100; ++i) {
        auto* const block = static_cast<volatile char*>(std::malloc(i * 100));
        *block = 1;
        std::free(const_cast<char*>(block));
    }
    return nullptr;
}

} // namespace

int main()
{
    pthread_key_t key;
    while (::pthread_key_create(&key, nullptr) == 0) {}
    long first = 0;
    for (int i = 0; i < 1000; ++i) {
        pthread_t thread;
        mallard::testing::check(::pthread_create(&thread, nullptr, work, nullptr) == 0,
                                "it starts");
        ::pthread_join(thread, nullptr);
        if (i == 100)
            first = resident_pages();
    }
    mallard::testing::check(resident_pages() < first + 2000,
                            "memory of ended threads is used again");
}
