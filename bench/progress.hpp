// One line on a terminal that says what is being done, and how far it is.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace mallard::bench {

/// Silent unless standard error is a terminal.
class progress {
public:
    explicit progress(double total) : total_(total) {}
    ~progress() { clear(); }
    progress(const progress&) = delete;
    progress& operator=(const progress&) = delete;

    void say(std::string const& text) const
    {
        if (shown_)
            std::fprintf(stderr, "\r\033[K%3.0f%%  %s", 100 * done_ / total_, text.c_str());
    }
    void clear() const
    {
        if (shown_)
            std::fputs("\r\033[K", stderr);
    }
    void advance(double by) { done_ += by; }

private:
    bool const shown_ = isatty(STDERR_FILENO) == 1;
    double total_;
    double done_ = 0;
};

} // namespace mallard::bench
