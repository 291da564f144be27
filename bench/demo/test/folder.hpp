// A directory of text files for one test. It is removed at the end of the test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace mallard::demo {

class folder {
public:
    folder()
    {
        std::string name =
            (std::filesystem::temp_directory_path() / "mallard-demo-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    ~folder() { std::filesystem::remove_all(path_); }
    folder(const folder&) = delete;
    folder& operator=(const folder&) = delete;

    /// Writes a file and returns its path.
    std::string file(const std::string& name, const std::string& text) const
    {
        auto const path = path_ / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << text;
        return path.string();
    }
    std::string path() const { return path_.string(); }

private:
    std::filesystem::path path_;
};

} // namespace mallard::demo
