#include <bench/replay/streams.hpp>

#include <bench/harness.hpp>
#include <bench/patterns.hpp>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>

namespace mallard::bench {
namespace {

constexpr unsigned align_log2 = 4;
constexpr std::size_t live = 10'000;    ///< blocks in use in the random mix
constexpr std::size_t handed_over = 64; ///< blocks that two threads exchange at a time

/// Adds the 64-bit words of an array to a checksum.
template <class T>
std::uint64_t mixed(std::uint64_t sum, T const* first, std::size_t bytes)
{
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, reinterpret_cast<std::byte const*>(first) + at, sizeof word);
        sum = mallard_replay_mix(sum, word);
    }
    return sum;
}

template <class T>
void put(std::ofstream& file, std::span<T const> all)
{
    file.write(reinterpret_cast<char const*>(all.data()),
               static_cast<std::streamsize>(all.size_bytes()));
}

} // namespace

void stream_writer::push(std::size_t thread, unsigned op, std::uint64_t size, std::uint32_t slot)
{
    bool const is_call = op == mallard_replay_op_malloc || op == mallard_replay_op_free;
    calls_ += is_call;
    if (is_call)
        slots_ = std::max<std::uint64_t>(slots_, slot + std::uint64_t{1});
    threads_[thread].push_back(
        {mallard_replay_pack(size, is_call ? align_log2 : 0, op, 0), slot, 0});
}

void stream_writer::malloc(std::size_t thread, std::uint32_t slot, std::size_t bytes)
{
    push(thread, mallard_replay_op_malloc, bytes, slot);
}

void stream_writer::free(std::size_t thread, std::uint32_t slot, std::size_t bytes)
{
    push(thread, mallard_replay_op_free, bytes, slot);
}

void stream_writer::start(std::size_t thread, std::uint32_t other)
{
    push(thread, mallard_replay_start, 0, other);
}

std::uint64_t stream_writer::publish(std::size_t thread)
{
    // Uses the number of ops as the position, because positions must grow. A position need not be
    // the exact number of ops.
    std::uint64_t const position = threads_[thread].size() + 1;
    push(thread, mallard_replay_publish, position, 0);
    return position;
}

void stream_writer::wait(std::size_t thread, std::uint32_t other, std::uint64_t position)
{
    push(thread, mallard_replay_wait, position, other);
}

mallard_replay_header stream_writer::header() const
{
    std::uint64_t ops = 0;
    for (auto const& of_thread : threads_)
        ops += of_thread.size();
    return {.magic = {0x89, 'M', 'R', 'E', 'P', 'L', 'Y', '\n'},
            .byte_order = mallard_replay_byte_order,
            .version = mallard_replay_version,
            .header_bytes = sizeof(mallard_replay_header),
            .op_bytes = sizeof(mallard_replay_op),
            .threads = static_cast<std::uint32_t>(threads_.size()),
            .targets = 1,
            .slots = slots_,
            .ops = ops,
            .live_peak = 0,
            .blocks_peak = slots_,
            .calls = calls_,
            .checksum = 0};
}

std::vector<mallard_replay_thread> stream_writer::table_of_threads() const
{
    std::vector<mallard_replay_thread> all;
    std::uint64_t offset = sizeof(mallard_replay_header) +
                           threads_.size() * sizeof(mallard_replay_thread) +
                           sizeof(mallard_replay_target);
    for (auto const& ops : threads_) {
        all.push_back(
            {.offset = offset, .ops = ops.size(), .recorded = all.size() + 1, .start_ns = 0});
        offset += ops.size() * sizeof(mallard_replay_op);
    }
    return all;
}

void stream_writer::write(std::string const& path)
{
    for (std::size_t thread = 0; thread < threads_.size(); ++thread)
        push(thread, mallard_replay_end, 0, 0);
    std::vector<mallard_replay_thread> const table = table_of_threads();
    mallard_replay_target const target{};
    mallard_replay_header begin = header();
    std::uint64_t sum = mixed(0, table.data(), table.size() * sizeof table[0]);
    sum = mixed(sum, &target, sizeof target);
    for (auto const& ops : threads_)
        sum = mixed(sum, ops.data(), ops.size() * sizeof ops[0]);
    begin.checksum = mixed(sum, &begin, offsetof(mallard_replay_header, checksum));

    std::ofstream file(path, std::ios::binary);
    put(file, std::span<mallard_replay_header const>(&begin, 1));
    put(file, std::span(table));
    put(file, std::span<mallard_replay_target const>(&target, 1));
    for (auto const& ops : threads_)
        put(file, std::span(ops));
    file.close();
    if (!file)
        throw cannot_run("there is no room for an op stream at " + path);
}

void write_regular(std::string const& path, std::size_t ops)
{
    constexpr std::uint32_t blocks = 10;
    stream_writer stream(1);
    for (std::size_t done = 0; done < ops; done += 2 * blocks) {
        for (std::uint32_t slot = 0; slot < blocks; ++slot)
            stream.malloc(0, slot, 16 * (slot + 1));
        for (std::uint32_t slot = blocks; slot-- > 0;)
            stream.free(0, slot, 16 * (slot + 1));
    }
    stream.write(path);
}

void write_random(std::string const& path, std::size_t ops)
{
    stream_writer stream(1);
    random_numbers random(5);
    std::size_t const blocks = std::min(live, ops / 4); // a stream has no more slots than ops
    std::vector<std::size_t> bytes(blocks);
    for (std::size_t done = 0; done < ops;) {
        std::uint32_t const slot = random.below(blocks);
        if (bytes[slot] != 0) {
            stream.free(0, slot, bytes[slot]);
            ++done;
        }
        bytes[slot] = 8 + random.below(1017);
        stream.malloc(0, slot, bytes[slot]);
        ++done;
    }
    stream.write(path);
}

void write_edges(std::string const& path, std::size_t ops)
{
    // Each thread frees the blocks of the other one, and reuses the slots for its next blocks.
    stream_writer stream(2);
    stream.start(0, 1);
    constexpr std::size_t bytes = 48;
    std::uint32_t first[2] = {0, handed_over};
    for (std::size_t done = 0; done < ops; done += 4 * handed_over) {
        std::uint64_t position[2];
        for (std::size_t thread = 0; thread < 2; ++thread) {
            for (std::uint32_t i = 0; i < handed_over; ++i)
                stream.malloc(thread, first[thread] + i, bytes);
            position[thread] = stream.publish(thread);
        }
        std::swap(first[0], first[1]);
        for (std::uint32_t thread = 0; thread < 2; ++thread) {
            stream.wait(thread, 1 - thread, position[1 - thread]);
            for (std::uint32_t i = 0; i < handed_over; ++i)
                stream.free(thread, first[thread] + i, bytes);
        }
    }
    stream.write(path);
}

} // namespace mallard::bench
