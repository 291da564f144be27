// expected advice: convert AS4
//
// A pipeline of three threads. The first reads lines of a log into batches of records, the second
// adds fields to each record, and the third adds the records up and drops the batch. An
// arena in each batch saves the most, although no function encloses the life of a batch.
#include "../known.hpp"

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

struct record {
    std::string host, path, agent;
    std::map<std::string, std::string, std::less<>> fields;
    std::uint32_t bytes = 0;
};

struct batch {
    std::vector<std::unique_ptr<record>> records;
};

/// Passes batches from one thread to another, at most eight at a time. Null marks the end.
class channel {
public:
    void send(std::unique_ptr<batch> sent)
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return waiting_.size() < 8; });
        waiting_.push_back(std::move(sent));
        changed_.notify_all();
    }

    std::unique_ptr<batch> receive()
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !waiting_.empty(); });
        auto received = std::move(waiting_.front());
        waiting_.pop_front();
        changed_.notify_all();
        return received;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::unique_ptr<batch>> waiting_;
};

/// Removes the text before the next blank, and returns it.
std::string_view next_word(std::string_view& line)
{
    auto const word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), word.size() + 1));
    return word;
}

std::unique_ptr<batch> read_batch(const std::vector<std::string>& lines)
{
    auto made = std::make_unique<batch>();
    for (std::string_view line : lines) {
        auto one = std::make_unique<record>();
        one->host = next_word(line);
        one->path = next_word(line);
        one->agent = next_word(line);
        one->bytes = static_cast<std::uint32_t>(one->path.size() * 100);
        made->records.push_back(std::move(one));
    }
    return made;
}

/// Adds the fields of the query, and the country of the host.
void add_fields(record& to)
{
    std::string_view query = to.path;
    query.remove_prefix(std::min(query.size(), query.find('?') + 1));
    while (!query.empty()) {
        auto const pair = query.substr(0, query.find('&'));
        auto const equals = pair.find('=');
        to.fields.emplace(pair.substr(0, equals), pair.substr(equals + 1));
        query.remove_prefix(std::min(query.size(), pair.size() + 1));
    }
    to.fields.emplace("country_of_the_host", to.host.substr(to.host.rfind('.') + 1));
}

std::uint64_t total_of(const batch& all)
{
    std::uint64_t total = 0;
    for (const auto& one : all.records) {
        total = total * 31 + one->bytes + one->agent.size();
        for (const auto& [name, text] : one->fields)
            total = total * 3 + name.size() + text.size();
    }
    return total;
}

std::string line_text(known::random_numbers& random)
{
    std::string out = "machine" + std::to_string(random.below(10'000)) + ".in.the.net.example";
    out += " /shop/articles/list?";
    for (std::uint32_t i = 0, all = 1 + random.below(5); i < all; ++i)
        out += (i > 0 ? "&parameter_number_" : "parameter_number_") + std::to_string(i) + '=' +
               std::string(random.below(40), 'v');
    return out + " agent/" + std::string(10 + random.below(30), 'a');
}

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 1800);
    known::random_numbers random(31);
    std::vector<std::string> lines(500);
    for (auto& line : lines)
        line = line_text(random);
    channel read, complete;
    std::jthread const reader([&] {
        for (int i = 0; i < rounds; ++i)
            read.send(read_batch(lines));
        read.send(nullptr);
    });
    std::jthread const completer([&] {
        while (auto one = read.receive()) {
            for (const auto& part : one->records)
                add_fields(*part);
            complete.send(std::move(one));
        }
        complete.send(nullptr);
    });
    std::uint64_t sum = 0;
    while (auto const one = complete.receive())
        sum = sum * 31 + total_of(*one);
    known::print(sum);
}
