// The contenders of the suite `trace`: programs that record the allocations of other programs.
#pragma once

#include <bench/trace/count.h>
#include <bench/trace/watched.hpp>

#include <optional>

namespace mallard::bench {

/// A recorder with its options. One object serves all cases.
class recorder {
public:
    virtual ~recorder() = default;
    virtual std::string name() const = 0;

    /// Throws `cannot_run` if the recorder is not installed.
    virtual void insist() const = 0;

    /// Returns the command that records a program. All files go to the directory `folder`, which is
    /// empty.
    virtual recording_command record(words const& program, std::string const& folder) const = 0;

    /// Returns the command that prints a first table of sites. Empty if the recorder has none.
    virtual words first_table(words const& program, std::string const& folder) const = 0;

    /// Returns how many calls the recorder did not record. `made` has the calls that the library in
    /// count.c counted. Empty if the recorder does not report how many calls it recorded.
    virtual std::optional<double> lost(call_counts const& made,
                                       std::string const& folder) const = 0;

    /// Returns the number of calls that the recorder reports as lost.
    virtual double admitted(std::string const&) const { return 0; }

    /// Returns whether the recorder itself allocates nothing. If so, the library in count.c, loaded
    /// after the recorder, counts the calls while the recorder works. Otherwise the library counts
    /// in the program without a recorder.
    virtual bool is_silent() const { return false; }

    /// Returns whether the recorder is too slow for a short run.
    virtual bool is_slow() const { return false; }

    /// Returns why some figures are not known.
    virtual std::string lacks() const { return ""; }
};

/// Returns a recorder that does nothing, so that the program runs alone.
recorder const& bare();

/// Returns the path of the command `mallard`, which is built in the directory of the benchmarks.
std::string mallard_command();

/// Returns `mallard record` with additional options.
std::unique_ptr<recorder> mallard_record(words const& options = {});

/// Returns heaptrack. Without symbols, it only writes its raw file.
enum class symbols { looked_up, left_out };
std::unique_ptr<recorder> heaptrack(symbols);

/// Returns the heap profiler of gperftools.
std::unique_ptr<recorder> heap_profiler();

/// Returns memray, which records only programs in Python.
std::unique_ptr<recorder> memray();

} // namespace mallard::bench
