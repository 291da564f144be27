// expected advice: pool AS7
//
// A cache that holds the last 20,000 of many documents. Its blocks are allocated and freed one by
// one, until the program ends.
#include "known.hpp"

#include <list>
#include <unordered_map>

struct document {
    std::uint32_t number;
    std::string title, text;
};

class lru_cache {
public:
    explicit lru_cache(std::size_t capacity) : capacity_(capacity) {}

    /// Returns a document. If the cache does not have it, the cache makes it and drops the document
    /// that was used least recently.
    const document& get(std::uint32_t number)
    {
        if (auto const found = places_.find(number); found != places_.end()) {
            documents_.splice(documents_.begin(), documents_, found->second);
            return documents_.front();
        }
        if (documents_.size() == capacity_) {
            places_.erase(documents_.back().number);
            documents_.pop_back();
        }
        insert(number);
        return documents_.front();
    }

private:
    void insert(std::uint32_t number)
    {
        documents_.push_front({number, std::string(16 + number % 17, 't'),
                               std::string(24 + number % 120, static_cast<char>(number % 64))});
        places_[number] = documents_.begin();
    }

    std::size_t capacity_;
    std::list<document> documents_; // the last used one is the first
    std::unordered_map<std::uint32_t, std::list<document>::iterator> places_;
};

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 10);
    lru_cache cache(20'000);
    known::random_numbers random(5);
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i)
        for (int request = 0; request < 100'000; ++request) {
            const document& found = cache.get(random.below(60'000));
            sum = sum * 31 + found.text.size() + found.title.size();
        }
    known::print(sum);
}
