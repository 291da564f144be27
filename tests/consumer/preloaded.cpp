// Runs with a preloaded malloc, and uses threads, aligned blocks, a fork and an exception.
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace {

void work(char letter)
{
    std::map<int, std::string> texts;
    for (int i = 0; i < 100'000; ++i)
        texts[i % 977] = std::string(static_cast<std::size_t>(i % 300), letter);
}

bool child_allocates()
{
    pid_t const child = ::fork();
    if (child == 0)
        ::_exit(std::string(100'000, 'x').back() == 'x' ? 0 : 1);
    int status = -1;
    return ::waitpid(child, &status, 0) == child && status == 0;
}

bool exception_is_caught()
{
    try {
        throw std::runtime_error("a text that does not fit into the object itself");
    } catch (std::exception const& thrown) {
        return std::strlen(thrown.what()) == 47;
    }
}

} // namespace

int main()
{
    std::vector<std::thread> threads;
    for (char letter = 'a'; letter < 'e'; ++letter)
        threads.emplace_back(work, letter);
    for (std::thread& thread : threads)
        thread.join();
    void* const aligned = std::aligned_alloc(64, 640);
    std::memset(aligned, 1, 640);
    void* const larger = std::realloc(aligned, 10'000);
    bool const is_kept = static_cast<char*>(larger)[639] == 1;
    std::free(larger);
    return is_kept && child_allocates() && exception_is_caught() ? 0 : 1;
}
