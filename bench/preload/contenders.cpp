#include <bench/preload/contenders.hpp>

#include <bench/contenders/heaps.hpp>
#include <bench/preload/process.hpp>

#include <filesystem>

namespace mallard::bench {
namespace {

template <class Tag>
preload of_debian()
{
    preload p{Tag::name(), Tag::library.file, ""};
    try {
        load_heap(Tag::library);
    } catch (cannot_run const& reason) {
        p.why = reason.what();
    }
    return p;
}

// Makes the name of a peer with the version of its crate, from peers/Cargo.lock. Google's tcmalloc
// has no releases, so its name has the month of its sources.
preload of_crate(const char* name, const char* file)
{
    std::string const library = program_folder() + "/peers/release/" + file;
    if (std::filesystem::exists(library))
        return {name, library, ""};
    return {name, library,
            "its crate is not built; help: install cargo and start this by ./x bench"};
}

// Asks the worker process in which library its malloc is.
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
    std::vector<preload> all{
        {glibc_tag::name(), "", ""},
        of_debian<mimalloc_tag>(),
        of_debian<jemalloc_tag>(),
        of_debian<gperftools_tag>(),
        of_crate("mimalloc-3.6.0", "libpeer_mimalloc.so"),
        of_crate("snmalloc-0.7.6", "libpeer_snmalloc.so"),
        of_crate("google-tcmalloc-2025.06", "libpeer_tcmalloc.so"),
        of_crate("rpmalloc-1.4.3", "libpeer_rpmalloc.so"),
        of_crate("jemalloc-5.3.1", "libpeer_jemalloc.so"),
    };
    std::filesystem::path const ours =
        std::filesystem::path(program_folder()).parent_path() / "src/malloc/libmallard.so";
    if (std::filesystem::exists(ours))
        all.push_back({"mallard/malloc", ours, ""});
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
