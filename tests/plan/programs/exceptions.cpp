// Throws through functions whose blocks belong to a rule, and catches bad_alloc for blocks that are
// too large. Allocates before main, and after main in destructors and at thread exit.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

struct early {
    std::map<int, std::string> texts;
    early()
    {
        for (int i = 0; i < 1000; ++i)
            texts[i] = std::string(static_cast<std::size_t>(i % 90), 'x');
    }
    ~early()
    {
        std::size_t bytes = 0;
        for (auto const& [number, text] : texts)
            bytes += text.size();
        std::printf("%zu bytes\n", bytes);
    }
};
early const of_the_program;
thread_local early const of_the_thread;

[[gnu::noinline]] int descend(int depth)
{
    std::string const text(static_cast<std::size_t>(depth) + 50, 'a');
    auto const number = std::make_unique<int>(depth);
    if (depth == 0)
        throw std::runtime_error(text + text);
    return descend(depth - 1) + *number;
}

bool is_refused()
{
    std::size_t volatile const bytes = std::size_t{1} << 60;
    try {
        ::operator delete(::operator new(bytes));
    } catch (std::bad_alloc const&) {
        return ::operator new(bytes, std::nothrow) == nullptr;
    }
    return false;
}

} // namespace

int main()
{
    std::size_t caught = 0;
    for (int i = 0; i < 500; ++i)
        try {
            descend(i % 40);
        } catch (std::runtime_error const& error) {
            caught += std::string(error.what()).size();
        }
    std::printf("%zu\n", caught);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([] { static_cast<void>(of_the_thread.texts.size()); });
    for (auto& thread : threads)
        thread.join();
    std::puts(is_refused() ? "done" : "no exception");
}
