// Calls one function many times, so that a tool can count its instructions. The function calls
// malloc, free, or nothing. `--toggle-collect=measured_call` counts only in this function.
#include <bench/worker/blocks.hpp>
#include <bench/worker/job.hpp>

namespace mallard::bench {
namespace {

// The type to which every measured function is cast: a function with one word as argument and
// result.
using word_function = std::uintptr_t (*)(std::uintptr_t);

// The asm in `keep` prevents a tail call, which the tool would mistake for the end of the function.
extern "C" [[gnu::noinline, gnu::used]] std::uintptr_t measured_call(word_function function,
                                                                     std::uintptr_t word)
{
    return keep(function(word));
}

// Does nothing. Its only instruction is the return.
[[gnu::naked, gnu::noinline]] std::uintptr_t nothing(std::uintptr_t)
{
    asm("ret");
}

enum class counted : std::size_t { nothing, malloc, free };

template <class F>
word_function as_word_function(F* function)
{
    return reinterpret_cast<word_function>(reinterpret_cast<void*>(function));
}

void call(counted what, std::size_t bytes)
{
    static word_function const take = as_word_function(&std::malloc);
    static word_function const give = as_word_function(&std::free);
    std::uintptr_t const block = what == counted::malloc ? measured_call(take, bytes) : take(bytes);
    if (what == counted::nothing)
        measured_call(nothing, block);
    if (what == counted::free)
        measured_call(give, block);
    else
        give(block);
}

round_function count(task const& t, effort)
{
    return [t](std::span<double>) {
        for (int i = 0; i < 1000; ++i) // warms caches and predictors
            by_malloc::give(by_malloc::take(t.bytes), t.bytes);
        for (std::size_t i = 0; i < t.count; ++i)
            call(static_cast<counted>(t.variant), t.bytes);
    };
}

constexpr job jobs[] = {{"count", count}};

} // namespace

std::span<const job> count_jobs()
{
    return jobs;
}

} // namespace mallard::bench
