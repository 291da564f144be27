// Makes op streams (files with recorded calls) for the suite `replay`.
#pragma once

#include <mallard/trace/replay_format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mallard::bench {

/// Collects the ops of threads and writes them as a file for mallard-replay.
class stream_writer {
public:
    explicit stream_writer(std::size_t threads) : threads_(threads) {}

    void malloc(std::size_t thread, std::uint32_t slot, std::size_t bytes);
    /// Frees a block of `bytes` bytes.
    void free(std::size_t thread, std::uint32_t slot, std::size_t bytes);
    /// Starts another thread.
    void start(std::size_t thread, std::uint32_t other);
    /// Publishes that the thread has done all its ops so far. Returns the position for `wait`.
    std::uint64_t publish(std::size_t thread);
    /// Waits until another thread has published a position.
    void wait(std::size_t thread, std::uint32_t other, std::uint64_t position);

    /// Ends all threads and writes the file. Throws `cannot_run` if the file cannot be written.
    void write(std::string const& path);

private:
    void push(std::size_t thread, unsigned op, std::uint64_t size, std::uint32_t slot);
    mallard_replay_header header() const;
    std::vector<mallard_replay_thread> table_of_threads() const;

    std::vector<std::vector<mallard_replay_op>> threads_;
    std::uint64_t calls_ = 0;
    std::uint64_t slots_ = 0;
};

/// Writes a stream of `ops` calls by one thread, which repeatedly allocates ten blocks and frees
/// them in reverse order.
void write_regular(std::string const& path, std::size_t ops);

/// Writes a stream of `ops` calls by one thread, which replaces random blocks among up to 10,000
/// blocks of 8 to 1024 bytes.
void write_random(std::string const& path, std::size_t ops);

/// Writes a stream of `ops` calls by two threads, which exchange 64 blocks at a time. Each frees
/// the blocks that it receives.
void write_edges(std::string const& path, std::size_t ops);

} // namespace mallard::bench
