// Measures memory in a file, which outlives the process. The cases open and commit such memory.
#include <bench/clock.hpp>
#include <bench/typed/contenders.hpp>

#include <mallard/persist/file_arena.hpp>

#include <boost/interprocess/managed_mapped_file.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>

namespace mallard::bench {
namespace {

namespace interprocess = boost::interprocess;

using word = std::uint64_t;
constexpr std::size_t page_words = page_bytes / sizeof(word);

/// A temporary file of this run, removed by the destructor.
class temporary_file {
public:
    temporary_file()
    {
        static int number = 0;
        path_ = std::filesystem::temp_directory_path() /
                ("mallard-bench-" + std::to_string(::getpid()) + "-" + std::to_string(number++));
    }
    temporary_file(temporary_file const&) = delete;
    temporary_file& operator=(temporary_file const&) = delete;
    ~temporary_file() { std::filesystem::remove(path_); }

    const char* path() const noexcept { return path_.c_str(); }

private:
    std::filesystem::path path_;
};

// Each contender below is an array of words in a file. The constructor makes the file. The
// benchmark then opens and closes the file as often as needed.

class in_file_arena {
public:
    static std::string name() { return "mallard/file_arena"; }

    explicit in_file_arena(std::size_t words)
    {
        open();
        word** const root = file_.root_or_make<word*>();
        *root = file_.make_array<word>(words).data();
    }

    void open()
    {
        if (!file_.open(at_.path()))
            throw cannot_run(file_.last_failure());
    }
    word* find() { return *file_.root<word*>(); }
    void commit()
    {
        if (!file_.commit())
            throw cannot_run(file_.last_failure());
    }
    void close() { file_.close(); }

private:
    temporary_file at_;
    file_arena file_;
};

/// A file mapped by Boost. A change reaches the file when the system writes the page. A commit
/// flushes all pages. After a crash of the system nothing is guaranteed.
class in_boost_file {
public:
    static std::string name() { return boost_name("interprocess", "/mapped-file"); }

    explicit in_boost_file(std::size_t words)
    {
        file_.emplace(interprocess::create_only, at_.path(), words * sizeof(word) + (1 << 20));
        file_->construct<word>("words")[words](1);
    }

    void open() { file_.emplace(interprocess::open_only, at_.path()); }
    word* find() { return file_->find<word>("words").first; }
    void commit() { file_->flush(); }
    void close() { file_.reset(); }

private:
    temporary_file at_;
    std::optional<interprocess::managed_mapped_file> file_;
};

/// A file that is mapped by open and mmap. A commit calls msync. This is the minimum that a program
/// has to do.
class in_mapped_file {
public:
    static std::string name() { return "limit/mmap"; }

    explicit in_mapped_file(std::size_t words) : bytes_(words * sizeof(word))
    {
        file_ = ::open(at_.path(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (file_ < 0 || ::ftruncate(file_, static_cast<off_t>(bytes_)) != 0)
            throw cannot_run("no file could be created");
        map();
    }
    in_mapped_file(in_mapped_file const&) = delete;
    in_mapped_file& operator=(in_mapped_file const&) = delete;
    ~in_mapped_file() { close(); }

    void open()
    {
        file_ = ::open(at_.path(), O_RDWR | O_CLOEXEC);
        map();
    }
    word* find() { return words_; }
    void commit() { ::msync(words_, bytes_, MS_SYNC); }
    void close()
    {
        if (words_ == nullptr)
            return;
        ::munmap(words_, bytes_);
        ::close(file_);
        words_ = nullptr;
    }

private:
    void map()
    {
        void* const at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
        if (at == MAP_FAILED)
            throw cannot_run("the file could not be mapped");
        words_ = static_cast<word*>(at);
    }

    temporary_file at_;
    std::size_t bytes_;
    int file_ = -1;
    word* words_ = nullptr;
};

using files = contender_list<in_file_arena, in_boost_file, in_mapped_file>;

template <class C>
std::shared_ptr<C> written(std::size_t bytes)
{
    auto const file = std::make_shared<C>(bytes / sizeof(word));
    word* const words = file->find();
    for (std::size_t i = 0; i < bytes / sizeof(word); i += page_words / 2)
        words[i] = i + 1;
    file->commit();
    return file;
}

template <class Body>
double seconds_of(Body body)
{
    double const from = wall_ns();
    body();
    return (wall_ns() - from) / 1e9;
}

std::size_t size_of(effort how, std::size_t mib)
{
    return (how.kind == effort::size::full ? mib : std::min<std::size_t>(mib, 16)) << 20;
}

experiment open_again(effort how)
{
    std::size_t const bytes = size_of(how, 1024);
    return {.asks = "A file of " + std::to_string(bytes >> 20) +
                    " MiB, all of it written, is opened again, its root found, and a word in its "
                    "middle read. Wall time",
            .figures = {{"file/open/" + std::to_string(bytes >> 20) + "MiB", "seconds"}},
            .entrants = entrants_of(files{}, {},
                                    [bytes]<class C>() -> round_function {
                                        auto const file = written<C>(bytes);
                                        return [file, bytes](std::span<double> out) {
                                            file->close();
                                            out[0] = seconds_of([&] {
                                                file->open();
                                                keep(file->find()[bytes / sizeof(word) / 2]);
                                            });
                                        };
                                    }),
            .rounds = how.is_smoke() ? 2u : 9u};
}

experiment commit(effort how, std::size_t changed)
{
    std::size_t const bytes = size_of(how, 256);
    std::size_t const pages = std::min(changed, bytes / page_bytes);
    return {.asks =
                "In a file of " + std::to_string(bytes >> 20) + " MiB " + std::to_string(pages) +
                " pages, far apart, are written to, and that is made to last: for Mallard all "
                "or nothing, with checksums; for the others each page when it happens. Wall time",
            .figures = {{"file/commit/" + std::to_string(pages) + "-pages", "seconds"}},
            .entrants = entrants_of(files{}, {},
                                    [bytes, pages]<class C>() -> round_function {
                                        auto const file = written<C>(bytes);
                                        return [file, bytes, pages,
                                                value = word{0}](std::span<double> out) mutable {
                                            std::size_t const step = bytes / sizeof(word) / pages;
                                            word* const words = file->find();
                                            ++value;
                                            for (std::size_t i = 0; i < pages; ++i)
                                                words[i * step] = value;
                                            out[0] = seconds_of([&] { file->commit(); });
                                        };
                                    }),
            .rounds = how.is_smoke() ? 2u : 9u};
}

} // namespace

std::vector<experiment> typed_file(effort how)
{
    return {open_again(how), commit(how, 1), commit(how, 1000)};
}

} // namespace mallard::bench
