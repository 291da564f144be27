// A limit order book: orders wait at their price, and the oldest order of a price is traded first.
//
// The orders of a price are in an intrusive list. The caller keeps the address of each order, so a
// cancelled order is removed in O(1). The next order uses its slot. The book makes and destroys
// every order, so orders need no handles.
#include <mallard/object_pool.hpp>

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <functional>
#include <map>
#include <random>
#include <vector>

struct level;

struct order {
    long price;
    long amount;
    level* at = nullptr;
    order* before = nullptr;
    order* behind = nullptr;
};

/// The orders of one price, the oldest first.
struct level {
    order* first = nullptr;
    order* last = nullptr;

    void push(order* o)
    {
        o->at = this;
        o->before = last;
        (last != nullptr ? last->behind : first) = o;
        last = o;
    }
    void remove(order* o)
    {
        (o->before != nullptr ? o->before->behind : first) = o->behind;
        (o->behind != nullptr ? o->behind->before : last) = o->before;
    }
};

namespace {

class order_book {
public:
    /// Trades with the orders that wait on the other side. If a part of the amount is left, makes
    /// an order for that part and returns it. That order waits. Otherwise returns null.
    order* buy(long price, long amount) { return place(asks_, bids_, price, amount); }
    order* sell(long price, long amount) { return place(bids_, asks_, price, amount); }

    /// Cancels a waiting order in O(1). A price that has no orders left is removed later, when it
    /// is the best price.
    void cancel(order* o)
    {
        o->at->remove(o);
        orders_.destroy(o);
    }

    std::size_t waiting() const { return orders_.stats().blocks_live; }
    long traded() const { return traded_; }

private:
    template <class Better>
    using side = std::map<long, level, Better>; // sorted with the best price first

    template <class Other, class Own>
    order* place(Other& other, Own& own, long price, long amount)
    {
        while (amount > 0 && !other.empty() && !other.key_comp()(price, other.begin()->first))
            if (order* const oldest = other.begin()->second.first; oldest != nullptr)
                amount -= trade(oldest, amount);
            else
                other.erase(other.begin());
        if (amount == 0)
            return nullptr;
        order* const o = orders_.make(price, amount).leak();
        own[price].push(o);
        return o;
    }

    long trade(order* with, long amount)
    {
        long const some = std::min(amount, with->amount);
        with->amount -= some;
        traded_ += some;
        if (with->amount == 0)
            cancel(with);
        return some;
    }

    mallard::object_pool<order> orders_;
    side<std::greater<>> bids_;
    side<std::less<>> asks_;
    long traded_ = 0;
};

} // namespace

int main()
{
    order_book book;
    book.sell(100, 5);
    book.sell(101, 5);
    book.sell(101, 7);
    assert(book.buy(99, 1) != nullptr); // nobody sells at that price
    assert(book.buy(101, 8) == nullptr);
    assert(book.traded() == 8 && book.waiting() == 3);

    order* const mine = book.sell(105, 3);
    book.cancel(mine);
    assert(book.waiting() == 3);

    // Simulates trade in which most orders are cancelled. The pool needs memory only for the
    // largest number of orders that wait at the same time.
    std::mt19937 random;
    std::vector<order*> quotes;
    for (int i = 0; i < 100'000; ++i) {
        if (quotes.size() == 1000) {
            std::swap(quotes[random() % quotes.size()], quotes.back());
            book.cancel(quotes.back());
            quotes.pop_back();
        }
        quotes.push_back(book.sell(200 + static_cast<long>(random() % 50), 1));
    }
    assert(book.waiting() == 3 + quotes.size());
    long const before = book.traded();
    assert(book.buy(1000, 9 + 1000) == nullptr); // buys 9 at 101, and every quote
    assert(book.traded() == before + 1009 && book.waiting() == 1);
    std::printf("traded %ld\n", book.traded());
}
