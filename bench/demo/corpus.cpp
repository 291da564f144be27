#include <bench/demo/corpus.hpp>

#include <bench/demo/error.hpp>
#include <bench/demo/json_reader.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace mallard::demo {

namespace {

const std::string nothing_measured = "nothing was measured";

/// Calls `visit(path)` for each file below `root`, sorted by name at every level, until `visit`
/// returns false. Does not follow links, so no file is visited twice and the walk ends.
bool walk(const fs::path& root, auto&& visit)
{
    std::vector<fs::directory_entry> entries;
    std::error_code error;
    for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error))
        entries.push_back(*at);
    std::ranges::sort(entries, {}, [](const fs::directory_entry& e) { return e.path().native(); });
    return std::ranges::all_of(entries, [&](const fs::directory_entry& e) {
        if (e.is_symlink(error))
            return true;
        if (e.is_directory(error))
            return walk(e.path(), visit);
        return !e.is_regular_file(error) || visit(e.path());
    });
}

/// Reads the first `bytes_max` bytes of a file. Returns false if the file cannot be read.
bool read(const fs::path& path, std::size_t bytes_max, std::string& text)
{
    std::ifstream in(path, std::ios::binary);
    if (!in)
        return false;
    text.clear();
    char block[1 << 16];
    while (text.size() < bytes_max && in) {
        in.read(block,
                static_cast<std::streamsize>(std::min(sizeof block, bytes_max - text.size())));
        text.append(block, static_cast<std::size_t>(in.gcount()));
    }
    return !in.bad();
}

/// Collects files up to a maximum total size.
class collector {
public:
    explicit collector(std::size_t bytes_max) : bytes_left_(bytes_max) {}

    void begin_root(std::size_t bytes_max) { root_bytes_left_ = std::min(bytes_max, bytes_left_); }

    bool is_full() const noexcept { return root_bytes_left_ == 0; }

    /// Adds the text of a file. Omits the file if it is unreadable, empty or binary.
    void take(const fs::path& path)
    {
        std::string text;
        if (!read(path, root_bytes_left_ + 1, text) || text.empty() ||
            text.find('\0') != std::string::npos)
            return;
        bool const is_json = path.extension() == ".json";
        if (text.size() > root_bytes_left_) {
            if (is_json)
                return; // a part of the document would not be valid JSON
            text.resize(root_bytes_left_);
            if (auto const line_end = text.rfind('\n'); line_end != std::string::npos)
                text.resize(line_end + 1);
            root_bytes_left_ = text.size(); // stops the collection, because no more text fits
        }
        root_bytes_left_ -= text.size();
        bytes_left_ -= text.size();
        auto const is = is_json && json_fault(text).empty() ? format::json : format::text;
        result_.files.push_back({path.string(), std::move(text), is});
    }

    collection finish() { return std::move(result_); }

private:
    collection result_;
    std::size_t bytes_left_;
    std::size_t root_bytes_left_ = 0;
};

[[noreturn]] void fail_to_open(const std::string& path, const std::string& why)
{
    throw failure("the text in " + path + " cannot be used: " + why, nothing_measured,
                  "mallard-bench-demo text " + path);
}

/// Maps a file and touches every page.
std::span<const std::byte> map(const std::string& path)
{
    int const descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about{};
    if (descriptor < 0 || ::fstat(descriptor, &about) != 0)
        fail_to_open(path, std::strerror(errno));
    auto const bytes = static_cast<std::size_t>(about.st_size);
    void* const base = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, descriptor, 0);
    int const error = errno;
    ::close(descriptor);
    if (base == MAP_FAILED)
        fail_to_open(path, std::strerror(error));
    return {static_cast<const std::byte*>(base), bytes};
}

} // namespace

std::size_t collection::bytes() const noexcept
{
    return std::accumulate(files.begin(), files.end(), std::size_t{0},
                           [](std::size_t sum, const file& f) { return sum + f.text.size(); });
}

collection collect_default(std::size_t bytes_max)
{
    const std::string roots[] = {
        "/usr/share/common-licenses", "/usr/share/perl", "/usr/include/c++",
        "/usr/include/linux",         "/usr/include",    "/usr/share/doc"};
    return collect(roots, bytes_max);
}

collection collect(std::span<const std::string> roots, std::size_t bytes_max)
{
    collector into(bytes_max);
    for (const auto& root : roots) {
        into.begin_root(bytes_max / 2);
        walk(root, [&](const fs::path& path) {
            if (!into.is_full())
                into.take(path);
            return !into.is_full();
        });
    }
    auto result = into.finish();
    if (result.files.empty())
        throw failure("there is no text to work on in " + roots.front() + " and other folders",
                      nothing_measured, "apt-get install g++ perl-modules-5.36");
    return result;
}

// The file contains the number of documents, then the size and format of each document, then their
// text.

void save(const collection& taken, const std::string& path)
{
    std::vector<std::uint64_t> head{taken.files.size()};
    for (const auto& f : taken.files)
        head.insert(head.end(), {f.text.size(), static_cast<std::uint64_t>(f.is)});
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(head.data()),
              static_cast<std::streamsize>(head.size() * sizeof head.front()));
    for (const auto& f : taken.files)
        out.write(f.text.data(), static_cast<std::streamsize>(f.text.size()));
    if (!out.flush())
        throw failure("the text cannot be written to " + path, nothing_measured, "df " + path);
}

std::vector<document> open_saved(const std::string& path)
{
    auto const file = map(path);
    auto const* const head = reinterpret_cast<const std::uint64_t*>(file.data());
    std::size_t const words = file.size() / sizeof *head;
    if (words == 0 || head[0] == 0 || head[0] > (words - 1) / 2)
        fail_to_open(path, "it is no saved text");
    std::vector<document> documents(head[0]);
    std::size_t at = (1 + 2 * documents.size()) * sizeof *head;
    for (std::size_t i = 0; i < documents.size(); ++i) {
        std::size_t const bytes = head[1 + 2 * i];
        if (bytes > file.size() - at)
            fail_to_open(path, "it is no saved text");
        documents[i] = {{reinterpret_cast<const char*>(file.data()) + at, bytes},
                        static_cast<format>(head[2 + 2 * i])};
        at += bytes;
    }
    return documents;
}

} // namespace mallard::demo
