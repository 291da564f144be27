// Shows the current experiment and the progress on one line of a terminal.
#pragma once

#include <bench/clock.hpp>

#include <unistd.h>

#include <cstdio>
#include <string>

namespace mallard::bench {

/// The line with the progress. Prints nothing unless standard error is a terminal.
class progress {
public:
    explicit progress(double total) : total_(total) {}
    ~progress() { clear(); }
    progress(const progress&) = delete;
    progress& operator=(const progress&) = delete;

    void say(std::string const& text) const
    {
        if (shown_)
            std::fprintf(stderr, "\r\033[K%3.0f%%  %s%s", 100 * done_ / total_, left().c_str(),
                         text.c_str());
    }
    void clear() const
    {
        if (shown_)
            std::fputs("\r\033[K", stderr);
    }
    void advance(double by) { done_ += by; }

private:
    // Estimates the remaining time. Assumes that each remaining experiment takes as long as the
    // mean of the finished ones.
    std::string left() const
    {
        if (done_ < total_ / 200)
            return "";
        double const minutes = (wall_ns() - start_) / 60e9 * (total_ - done_) / done_;
        char text[40];
        std::snprintf(text, sizeof text, minutes < 100 ? "%.0f min left  " : "%.1f h left  ",
                      minutes < 100 ? minutes : minutes / 60);
        return text;
    }

    bool const shown_ = isatty(STDERR_FILENO) == 1;
    double const start_ = wall_ns();
    double total_;
    double done_ = 0;
};

} // namespace mallard::bench
