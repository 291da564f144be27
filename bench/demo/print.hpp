// Prints into a string in the manner of printf, because libstdc++ 12 has no std::format.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>

namespace mallard::demo {

[[gnu::format(printf, 1, 2)]] inline std::string print(const char* format, ...)
{
    std::va_list values;
    std::va_list again;
    va_start(values, format);
    va_copy(again, values);
    std::string text(static_cast<std::size_t>(std::vsnprintf(nullptr, 0, format, values)), '\0');
    std::vsnprintf(text.data(), text.size() + 1, format, again);
    va_end(again);
    va_end(values);
    return text;
}

/// Writes a number with separators: 1,203,411.
inline std::string grouped(std::uint64_t number)
{
    std::string text = std::to_string(number);
    for (std::size_t i = text.size(); i > 3; i -= 3)
        text.insert(i - 3, ",");
    return text;
}

inline double mib(double kib)
{
    return kib / 1024;
}

/// Writes a number of bytes in a readable unit: "812 bytes", "44.1 KiB", "8.0 MiB".
inline std::string size_text(std::uint64_t bytes)
{
    if (bytes < 1024)
        return print("%llu bytes", static_cast<unsigned long long>(bytes));
    double const kib = static_cast<double>(bytes) / 1024;
    return kib < 1024 ? print("%.1f KiB", kib) : print("%.1f MiB", mib(kib));
}

} // namespace mallard::demo
