#include <bench/demo/corpus.hpp>

#include <bench/demo/error.hpp>
#include <bench/demo/json_reader.hpp>
#include <bench/demo/words.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace mallard::demo {

namespace {

const std::string nothing_measured = "nothing was measured";
const std::string cap_text = "there is text enough";

/// Calls `visit(path, why_unreadable)` for each file below `root`, sorted by name at every level,
/// until `visit` returns false. Links are not followed, so no file is visited twice and the walk
/// ends.
bool walk(const fs::path& root, auto&& visit)
{
    std::vector<fs::directory_entry> entries;
    std::error_code error;
    for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error))
        entries.push_back(*at);
    if (error)
        return visit(root, error.message());
    std::ranges::sort(entries, {}, [](const fs::directory_entry& e) { return e.path().native(); });
    return std::ranges::all_of(entries, [&](const fs::directory_entry& e) {
        if (e.is_symlink(error))
            return true;
        if (e.is_directory(error))
            return walk(e.path(), visit);
        return !e.is_regular_file(error) || visit(e.path(), std::string());
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

/// Collects files up to a maximum total size, and records why other files were left out.
class collector {
public:
    explicit collector(std::size_t bytes_max) : bytes_left_(bytes_max) {}

    void begin(const std::string& place, std::size_t bytes_max)
    {
        result_.places.push_back({.name = place});
        place_bytes_left_ = std::min(bytes_max, bytes_left_);
    }

    bool is_full() const noexcept { return place_bytes_left_ == 0; }

    /// Reads a file and adds its text. If the file is left out, returns the reason. If it is added,
    /// returns an empty string.
    std::string take(const fs::path& path)
    {
        std::string text;
        errno = 0;
        if (!read(path, place_bytes_left_ + 1, text))
            return std::strerror(errno != 0 ? errno : EIO);
        if (text.empty())
            return "it is empty";
        if (text.find('\0') != std::string::npos)
            return "it is binary";
        bool const is_json = path.extension() == ".json";
        if (text.size() > place_bytes_left_) {
            if (is_json)
                return "it is too large for what there is besides";
            text.resize(place_bytes_left_);
            if (auto const line_end = text.rfind('\n'); line_end != std::string::npos)
                text.resize(line_end + 1);
            note(path, "cut after " + std::to_string(text.size()) + " bytes, " + cap_text);
            place_bytes_left_ = text.size(); // no more text fits
        }
        auto const fault = is_json ? json_fault(text) : std::string();
        if (!fault.empty())
            note(path, "read as plain text, " + fault);
        add(path, std::move(text), is_json && fault.empty() ? format::json : format::text);
        return {};
    }

    void note(const fs::path& path, const std::string& what)
    {
        result_.notes.push_back(path.string() + ": " + what);
    }

    collection finish()
    {
        std::erase_if(result_.places, [](const auto& place) { return place.files == 0; });
        return std::move(result_);
    }

private:
    void add(const fs::path& path, std::string text, format is)
    {
        place_bytes_left_ -= text.size();
        bytes_left_ -= text.size();
        result_.places.back().files += 1;
        result_.places.back().bytes += text.size();
        result_.files.push_back({path.string(), std::move(text), is});
    }

    collection result_;
    std::size_t bytes_left_;
    std::size_t place_bytes_left_ = 0;
};

/// Adds a directory or file that the user named. The name has to exist.
void take_named(collector& into, const std::string& name, std::size_t bytes_max)
{
    std::error_code error;
    auto const status = fs::status(name, error);
    if (!fs::exists(status))
        throw failure(
            name + ": no such file or directory", nothing_measured,
            "name a text file or a directory, or nothing: `./x demo` finds text by itself");
    into.begin(name, bytes_max);
    if (fs::is_directory(status)) {
        walk(name, [&](const fs::path& path, const std::string& unreadable) {
            if (into.is_full()) {
                into.note(path, "left out, as all behind it: " + cap_text);
                return false;
            }
            auto const why = unreadable.empty() ? into.take(path) : unreadable;
            if (!why.empty())
                into.note(path, "skipped, " + why);
            return true;
        });
        return;
    }
    if (!fs::is_regular_file(status))
        throw failure(name + ": neither a file nor a directory", nothing_measured,
                      "name a text file or a directory, or save the text first: `... > text.txt`");
    if (::access(name.c_str(), R_OK) != 0)
        throw failure(name + ": " + std::strerror(errno), nothing_measured,
                      "`ls -l " + name + "` shows who may read it");
    if (auto const why = into.is_full() ? cap_text : into.take(name); !why.empty())
        into.note(name, "skipped, " + why);
}

} // namespace

std::size_t collection::bytes() const noexcept
{
    return std::accumulate(files.begin(), files.end(), std::size_t{0},
                           [](std::size_t sum, const file& f) { return sum + f.text.size(); });
}

std::uint64_t collection::fingerprint() const noexcept
{
    std::uint64_t hash = 0;
    for (const auto& f : files)
        hash = hash * 31 + hash_of(f.text);
    return hash;
}

collection collect_default(std::size_t bytes_max)
{
    collector into(bytes_max);
    for (const char* const root :
         {"/usr/share/common-licenses", "/usr/share/perl", "/usr/include/c++", "/usr/include/linux",
          "/usr/include", "/usr/share/doc"}) {
        into.begin(root, bytes_max / 2);
        walk(root, [&](const fs::path& path, const std::string& unreadable) {
            if (unreadable.empty() && !into.is_full())
                into.take(path); // skips files that are not text
            return !into.is_full();
        });
    }
    auto result = into.finish();
    result.notes.clear();
    if (result.files.empty())
        throw failure("found no text to work on", nothing_measured,
                      "name some: `./x demo README.md include`");
    return result;
}

collection collect_named(std::span<const std::string> names, std::size_t bytes_max)
{
    collector into(bytes_max);
    for (const auto& name : names)
        take_named(into, name, bytes_max);
    auto result = into.finish();
    if (result.files.empty())
        throw failure("nothing to work on in " + names.front() + (names.size() > 1 ? ", ..." : ""),
                      result.notes.empty() ? "no file was found there"
                                           : std::to_string(result.notes.size()) +
                                                 " skipped; the first: " + result.notes.front(),
                      "name text or JSON files, or nothing: `./x demo` finds text by itself");
    return result;
}

// The shared memory contains the number of documents, then the size and format of each document,
// then their text.

int share(const collection& taken)
{
    std::vector<std::uint64_t> head{taken.files.size()};
    std::string text;
    for (const auto& f : taken.files) {
        head.insert(head.end(), {f.text.size(), static_cast<std::uint64_t>(f.is)});
        text += f.text;
    }
    int const descriptor = ::memfd_create("mallard-demo", 0);
    auto const put = [&](const void* data, std::size_t bytes) {
        for (std::size_t done = 0; done < bytes;) {
            auto const n = ::write(descriptor, static_cast<const char*>(data) + done, bytes - done);
            if (n <= 0)
                throw failure(std::string("cannot keep the text in memory: ") +
                                  std::strerror(errno),
                              nothing_measured, "name fewer or smaller files");
            done += static_cast<std::size_t>(n);
        }
    };
    put(head.data(), head.size() * sizeof head.front());
    put(text.data(), text.size());
    return descriptor;
}

std::vector<document> open_shared(int descriptor)
{
    struct stat about{};
    void* const base = ::fstat(descriptor, &about) != 0
                           ? MAP_FAILED
                           : ::mmap(nullptr, static_cast<std::size_t>(about.st_size), PROT_READ,
                                    MAP_SHARED | MAP_POPULATE, descriptor, 0);
    if (base == MAP_FAILED)
        throw failure("the text of a cell cannot be mapped", "the cell did not run",
                      "start the demo without --cell: it starts cells by itself");
    auto const* const head = static_cast<const std::uint64_t*>(base);
    std::vector<document> documents(head[0]);
    auto const* text = reinterpret_cast<const char*>(head + 1 + 2 * head[0]);
    for (std::size_t i = 0; i < documents.size(); ++i) {
        documents[i] = {{text, head[1 + 2 * i]}, static_cast<format>(head[2 + 2 * i])};
        text += head[1 + 2 * i];
    }
    return documents;
}

} // namespace mallard::demo
