// What a file arena of 1 GiB costs: `mallard-bench-file [FOLDER]`. The lowest and the
// median of some runs, beside what the disk itself takes.
#include <mallard/file_arena.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

void require(bool holds, const char* what)
{
    if (holds)
        return;
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
}

template <class F>
double milliseconds(F f)
{
    auto const begin = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
        .count();
}

template <class F>
void report(const char* what, int runs, F f)
{
    std::vector<double> times;
    for (int run = 0; run < runs; ++run)
        times.push_back(f());
    std::sort(times.begin(), times.end());
    std::printf("%-46s %9.3f %9.3f ms\n", what, times.front(), times[times.size() / 2]);
}

void commit(mallard::file_arena& file)
{
    require(file.commit(), file.last_refusal());
}

void measure_commits(const std::string& path, bool sync)
{
    mallard::file_arena file;
    require(file.open(path.c_str(), {.sync = sync}), file.last_refusal());
    auto* const block = static_cast<char*>(*file.root<void*>());
    report("  1 page of 1 GiB", 21, [&] {
        ++block[512 * mib];
        return milliseconds([&] { commit(file); });
    });
    report("  nothing", 21, [&] { return milliseconds([&] { commit(file); }); });
    report("  100 MB that changed", 5, [&] {
        for (std::size_t at = 0; at < 100'000'000; at += 4096)
            ++block[at];
        return milliseconds([&] { commit(file); });
    });
    report("  100 MB that are new", 5, [&] {
        void* const fresh = file.allocate({100'000'000});
        std::memset(fresh, 1, 100'000'000);
        double const time = milliseconds([&] { commit(file); });
        file.deallocate(fresh, {100'000'000});
        commit(file);
        return time;
    });
}

void measure_disk(const std::string& path)
{
    std::vector<char> bytes(100'000'000, 'x');
    int const file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    report("limit: pwrite and fdatasync of 4 KiB", 21, [&] {
        return milliseconds([&] {
            require(::pwrite(file, bytes.data(), 4096, 0) == 4096 && ::fdatasync(file) == 0,
                    "disk");
        });
    });
    report("limit: pwrite and fdatasync of 100 MB", 5, [&] {
        require(::ftruncate(file, 0) == 0, "disk");
        return milliseconds([&] {
            require(::pwrite(file, bytes.data(), bytes.size(), 0) > 0 && ::fdatasync(file) == 0,
                    "disk");
        });
    });
    ::close(file);
    std::filesystem::remove(path);
}

} // namespace

int main(int count, char** arguments)
{
    std::string const path = std::string(count > 1 ? arguments[1] : ".") + "/mallard-bench-file";
    std::printf("%-46s %9s %9s\n", "", "lowest", "median");
    measure_disk(path);
    {
        mallard::file_arena file;
        require(file.open(path.c_str(), {.sync = false}), file.last_refusal());
        auto* const root = file.root_or_make<void*>();
        *root = std::memset(file.allocate({1024 * mib}), 1, 1024 * mib);
        commit(file);
    }
    using mallard::file_access;
    report("open 1 GiB, write", 21, [&] {
        mallard::file_arena file;
        return milliseconds([&] { require(file.open(path.c_str()), file.last_refusal()); });
    });
    report("open 1 GiB, read", 21, [&] {
        mallard::file_arena file;
        return milliseconds([&] {
            require(file.open(path.c_str(), {.access = file_access::read}), file.last_refusal());
        });
    });
    report("open 1 GiB, not in the page cache", 9, [&] {
        int const bare = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        require(::fdatasync(bare) == 0 && ::posix_fadvise(bare, 0, 0, POSIX_FADV_DONTNEED) == 0,
                "the page cache keeps the file");
        ::close(bare);
        mallard::file_arena file;
        return milliseconds([&] { require(file.open(path.c_str()), file.last_refusal()); });
    });
    report("verify 1 GiB, in the page cache", 3, [&] {
        mallard::file_arena file;
        require(file.open(path.c_str()), file.last_refusal());
        return milliseconds([&] { require(file.verify(), file.last_refusal()); });
    });
    std::puts("commit:");
    measure_commits(path, true);
    std::puts("commit, .sync = false:");
    measure_commits(path, false);
    std::filesystem::remove(path);
}
