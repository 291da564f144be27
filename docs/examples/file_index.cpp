// A word index in a file. One process makes the index, and the next process uses and extends it.
#include <mallard/allocator.hpp>
#include <mallard/persist/file_arena.hpp>

#include <cassert>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string_view>

#include <sys/wait.h>
#include <unistd.h>

using index_entry = std::pair<const std::string_view, int>;
using word_index = std::map<std::string_view, int, std::less<>,
                            mallard::allocator<index_entry, mallard::file_blocks>>;

void add(mallard::file_arena& file, word_index& words, std::string_view text)
{
    while (!text.empty()) {
        std::string_view const word = text.substr(0, text.find(' '));
        auto found = words.find(word);
        if (found == words.end())
            found = words.emplace(file.copy(word), 0).first; // copies the characters into the file
        ++found->second;
        text.remove_prefix(std::min(text.size(), word.size() + 1));
    }
}

int count(const word_index& words, std::string_view word)
{
    auto const found = words.find(word);
    return found == words.end() ? 0 : found->second;
}

/// Makes the index. Runs in a separate process.
bool build(const char* path)
{
    mallard::file_arena file;
    if (!file.open(path)) {
        std::puts(file.last_failure());
        return false;
    }
    auto* const words = file.root_or_make<word_index>(file.blocks());
    if (words == nullptr)
        return false; // the file belongs to another program: see last_failure()
    add(file, *words, "the duck and the mallard");
    return file.commit();
}

/// Extends the index, in the next process.
bool extend(const char* path)
{
    mallard::file_arena file;
    if (!file.open(path))
        return false;
    auto* const words = file.root<word_index>(); // nothing is read or rebuilt
    assert(words != nullptr && count(*words, "the") == 2 && count(*words, "mallard") == 1);
    add(file, *words, "the drake");
    return file.commit();
}

template <class F>
bool in_a_process(F f)
{
    pid_t const child = ::fork();
    if (child == 0)
        ::_exit(f() ? 0 : 1);
    int status = 1;
    return ::waitpid(child, &status, 0) == child && status == 0;
}

int main()
{
    std::string const path =
        std::filesystem::temp_directory_path() / ("words-" + std::to_string(::getpid()));
    [[maybe_unused]] bool const built = in_a_process([&] { return build(path.c_str()); });
    [[maybe_unused]] bool const extended = in_a_process([&] { return extend(path.c_str()); });
    assert(built && extended);

    // Any number of processes may read the file at the same time, and share the memory.
    mallard::file_arena file;
    if (!file.open(path.c_str(), {.access = mallard::file_access::read, .verify = true}))
        std::puts(file.last_failure());
    assert(count(*file.root<word_index>(), "the") == 3);
    assert(count(*file.root<word_index>(), "drake") == 1);
    std::filesystem::remove(path);
}
