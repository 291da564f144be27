#include <bench/programs/run.hpp>

#include <bench/harness.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace mallard::bench {
namespace {

std::vector<std::string> launched(std::vector<std::string> const& command,
                                  std::string const& library)
{
    std::vector<std::string> all{program_folder() + "/mallard-bench-launch", library};
    all.insert(all.end(), command.begin(), command.end());
    return all;
}

} // namespace

running_program::running_program(std::vector<std::string> const& command,
                                 std::string const& library)
    : name_(command.front()), process_(launched(command, library), "")
{
}

run_result running_program::wait()
{
    run_result result{.output = process_.read_all()};
    std::size_t const at = result.output.rfind("\n@ ");
    int status = -1;
    if (at == std::string::npos ||
        std::sscanf(result.output.c_str() + at, "\n@ %d %lf %lf %lf", &status, &result.wall_seconds,
                    &result.cpu_seconds, &result.peak_kib) != 4)
        throw cannot_run(name_ + " could not be launched, or printed nothing for too long");
    if (status != 0)
        throw cannot_run(name_ + " ended with " + described(status));
    result.output.resize(at);
    result.wall_seconds *= 1e-9;
    result.cpu_seconds *= 1e-9;
    return result;
}

std::string program_path(std::string const& name, std::string const& package)
{
    // Uses a fixed path, because PATH may find another version that is a script.
    std::string path = "/usr/bin/" + name;
    if (access(path.c_str(), X_OK) != 0)
        throw cannot_run("there is no " + path + "; help: apt-get install " + package);
    return path;
}

temporary_folder::temporary_folder()
{
    std::string name = std::filesystem::temp_directory_path() / "mallard-bench-XXXXXX";
    if (mkdtemp(name.data()) == nullptr)
        throw cannot_run("cannot create a directory in " + name);
    path_ = name;
}

temporary_folder::temporary_folder(std::filesystem::path path)
    : path_(std::move(path)), is_kept_(true)
{
    std::error_code error;
    std::filesystem::create_directories(path_, error);
    if (error)
        throw cannot_run("cannot create a directory at " + path_.string());
}

temporary_folder::~temporary_folder()
{
    if (is_kept_)
        return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string temporary_folder::write(std::string const& name, std::string const& text) const
{
    std::ofstream(path_ / name, std::ios::binary) << text;
    return *this / name;
}

} // namespace mallard::bench
