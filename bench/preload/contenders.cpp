#include <bench/preload/contenders.hpp>

#include <bench/contenders/heaps.hpp>
#include <bench/preload/process.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace mallard::bench {
namespace {

// One line of spec/allocators.csv.
struct allocator_line {
    std::string contender;
    std::string kind;
    std::string library;
    std::string package;
};

std::vector<allocator_line> read_list()
{
    std::ifstream file(ALLOCATORS);
    std::vector<allocator_line> lines;
    std::string text;
    std::getline(file, text); // the names of the columns
    while (std::getline(file, text)) {
        std::istringstream fields(text);
        std::string name;
        allocator_line& line = lines.emplace_back();
        for (std::string* const field :
             {&name, &line.contender, &line.kind, &line.library, &line.package})
            std::getline(fields, *field, ',');
        // Of several versions, the first is that of Debian 12, which the benchmarks use.
        for (std::string* const field : {&line.library, &line.package})
            *field = field->substr(0, field->find(' '));
    }
    if (lines.empty())
        throw std::runtime_error("no allocators can be read from " ALLOCATORS);
    return lines;
}

// Loads a library of Debian. Then replaces the * in the contender's name by the version that the
// loaded library reports.
preload of_debian(allocator_line const& line)
{
    static std::map<std::string, std::string (*)(void*)> const versions{
        {"mimalloc-*", mimalloc_version},
        {"jemalloc-*", jemalloc_version},
        {"gperftools-*", gperftools_version},
    };
    heap_library const library{line.library.c_str(), line.package.c_str(),
                               versions.at(line.contender)};
    std::string const plain = line.contender.substr(0, line.contender.size() - 2);
    preload p{heap_name(plain.c_str(), library), line.library, ""};
    try {
        load_heap(library);
    } catch (cannot_run const& reason) {
        p.why = reason.what();
    }
    return p;
}

// Returns a malloc that peers/ builds. Its name has the version of its crate, from
// peers/Cargo.lock. Google's tcmalloc has no releases, so its name has the month of its sources.
preload of_crate(allocator_line const& line)
{
    std::string const library = program_folder() + "/peers/release/" + line.library;
    if (std::filesystem::exists(library))
        return {line.contender, library, ""};
    return {line.contender, library,
            "its crate is not built; help: install cargo and start this by ./x bench"};
}

// Starts a worker process, and asks it in which library its malloc is.
void try_out(preload& p)
{
    if (!p.why.empty())
        return;
    process loaded({program_folder() + "/mallard-bench-worker", "whose-malloc"}, p.library);
    std::string const found = loaded.read_all();
    std::string const wanted = p.library.empty() ? "libc.so" : p.library;
    if (int const status = loaded.wait(); status != 0)
        p.why = "a program that loads it ends with " + described(status);
    else if (!std::filesystem::path(found).filename().string().starts_with(
                 std::filesystem::path(wanted).filename().string()))
        p.why = "where it is loaded, malloc is that of " + found;
}

std::vector<preload> try_all()
{
    std::filesystem::path const ours =
        std::filesystem::path(program_folder()).parent_path() / "src/malloc";
    std::vector<preload> all;
    for (allocator_line const& line : read_list()) {
        if (line.contender.empty())
            continue; // glibc with other settings, and mallocs that are never started
        if (line.kind == "libc")
            all.push_back({glibc_tag::name(), "", ""});
        else if (line.kind == "debian")
            all.push_back(of_debian(line));
        else if (line.kind == "crate")
            all.push_back(of_crate(line));
        else if (std::filesystem::exists(ours / line.library))
            all.push_back({line.contender, ours / line.library, ""});
    }
    for (preload& p : all)
        try_out(p);
    return all;
}

} // namespace

std::vector<preload> const& preloads()
{
    static std::vector<preload> const all = try_all();
    return all;
}

std::string program_folder()
{
    return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

} // namespace mallard::bench
