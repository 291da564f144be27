// follows the advice: pool AS7
//
// The program lru_cache.cpp with one multipool for all blocks of the cache.
#include "known.hpp"

#include <mallard/allocator.hpp>
#include <mallard/multipool.hpp>

#include <list>
#include <unordered_map>

template <class T>
using in_multipool = mallard::allocator<T, mallard::multipool<>>;
using text = std::basic_string<char, std::char_traits<char>, in_multipool<char>>;

struct document {
    std::uint32_t number;
    text title, body;
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
    using list = std::list<document, in_multipool<document>>;
    using place = std::pair<const std::uint32_t, list::iterator>;

    void insert(std::uint32_t number)
    {
        documents_.push_front({number, text(16 + number % 17, 't', memory_),
                               text(24 + number % 120, static_cast<char>(number % 64), memory_)});
        places_[number] = documents_.begin();
    }

    std::size_t capacity_;
    mallard::multipool<> memory_;
    list documents_{memory_}; // the last used one is the first
    std::unordered_map<std::uint32_t, list::iterator, std::hash<std::uint32_t>, std::equal_to<>,
                       in_multipool<place>>
        places_{memory_};
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
            sum = sum * 31 + found.body.size() + found.title.size();
        }
    known::print(sum);
}
