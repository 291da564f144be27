// Helpers for files of file arenas: a temporary directory, the bytes of a file, and its arena.
#pragma once

#include <mallard/persist/file_arena.hpp>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace mallard::testing {

/// A temporary directory. The destructor removes it.
class temporary_folder {
public:
    temporary_folder()
    {
        std::string name = (std::filesystem::temp_directory_path() / "mallard-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;
    ~temporary_folder()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    std::string operator/(const char* name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

inline std::string bytes_of(const std::string& path)
{
    std::string bytes(std::filesystem::file_size(path), '\0');
    std::ifstream(path, std::ios::binary)
        .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return bytes;
}

inline void write_bytes(const std::string& path, const std::string& bytes)
{
    std::filesystem::remove(path); // overwriting a truncated file waits for the disk
    std::ofstream(path, std::ios::binary) << bytes;
}

/// Returns all committed bytes, except for the one word that differs in each process.
inline std::string contents_of(const file_arena& file)
{
    std::string bytes(file.stats().bytes_used, '\0');
    std::memcpy(bytes.data(), static_cast<void*>(&file.blocks()), bytes.size());
    return bytes.replace(8, 8, 8, '\0');
}

inline bool says(const file_arena& file, std::string_view words)
{
    return std::string_view(file.last_failure()).find(words) != std::string_view::npos;
}

} // namespace mallard::testing
