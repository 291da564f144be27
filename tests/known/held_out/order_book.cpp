// expected advice: pool AS7
//
// The order books of an exchange. Orders rest in a queue at each price, and are filled, replaced
// and cancelled in random order, so the blocks of all books are allocated and freed one by one.
#include "../known.hpp"

#include <list>
#include <map>
#include <unordered_map>

struct order {
    std::uint32_t number, quantity;
    std::string client;
};

/// The orders of one side of a book, in queues by price.
using side = std::map<std::uint32_t, std::list<order>>;

class book {
public:
    /// Fills as much of an order as possible, and lets the rest wait. Returns the filled quantity.
    std::uint32_t add(order taken, bool buys, std::uint32_t price)
    {
        std::uint32_t const wanted = taken.quantity;
        side& others = buys ? sells_ : buys_;
        while (taken.quantity > 0 && !others.empty()) {
            auto const best = buys ? others.begin() : std::prev(others.end());
            if (buys ? best->first > price : best->first < price)
                break;
            fill(taken, best->second);
            if (best->second.empty())
                others.erase(best);
        }
        std::uint32_t const filled = wanted - taken.quantity;
        if (taken.quantity > 0) {
            auto& queue = (buys ? buys_ : sells_)[price];
            std::uint32_t const number = taken.number;
            queue.push_back(std::move(taken));
            places_[number] = {std::prev(queue.end()), price, buys};
        }
        return filled;
    }

    /// Removes an order that waits. Returns false if it does not wait.
    bool cancel(std::uint32_t number)
    {
        auto const found = places_.find(number);
        if (found == places_.end())
            return false;
        side& own = found->second.buys ? buys_ : sells_;
        auto const queue = own.find(found->second.price);
        queue->second.erase(found->second.at);
        if (queue->second.empty())
            own.erase(queue);
        places_.erase(found);
        return true;
    }

    std::size_t size() const { return places_.size(); }

private:
    struct place {
        std::list<order>::iterator at;
        std::uint32_t price;
        bool buys;
    };

    /// Fills an order from the front of a queue.
    void fill(order& taken, std::list<order>& queue)
    {
        while (taken.quantity > 0 && !queue.empty()) {
            order& first = queue.front();
            std::uint32_t const traded = std::min(taken.quantity, first.quantity);
            taken.quantity -= traded;
            first.quantity -= traded;
            if (first.quantity > 0)
                return;
            places_.erase(first.number);
            queue.pop_front();
        }
    }

    side buys_, sells_;
    std::unordered_map<std::uint32_t, place> places_;
};

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 7);
    known::random_numbers random(29);
    std::vector<book> books(20);
    std::uint64_t sum = 0;
    std::uint32_t number = 0;
    for (int i = 0; i < rounds; ++i)
        for (int events = 0; events < 100'000; ++events, ++number) {
            book& at = books[number % 20];
            bool const buys = random.below(2) == 0;
            std::uint32_t const distance = random.below(400);
            std::uint32_t const price = buys ? 10'010 - distance : 9'990 + distance;
            std::string client = "client/" + std::to_string(random.below(900)) + "/desk of futures";
            sum = sum * 31 + at.add({number, 1 + random.below(90), std::move(client)}, buys, price);
            if (number > 40'000)
                for (int cancelled = 0; cancelled < 2; ++cancelled) {
                    std::uint32_t const other = number - random.below(40'000);
                    sum += books[other % 20].cancel(other);
                }
        }
    for (const auto& one : books)
        sum = sum * 31 + one.size();
    known::print(sum);
}
