// Calls of many kinds, for names_matrix.rs: inlined functions, templates, lambdas, virtual
// functions, recursion, C functions, static functions, and functions whose cold part the compiler
// moves away.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

static void* volatile last;

namespace orders {

template <class T>
struct queue {
    std::vector<T> items;
    inline void add(T item) { items.push_back(std::move(item)); }
    template <class F>
    void each(F f)
    {
        for (auto& item : items)
            f(item);
    }
};

struct shape {
    virtual ~shape() = default;
    virtual std::string name() const = 0;
};
struct circle final : shape {
    std::string name() const override { return std::string(40, 'c'); }
};
struct square final : shape {
    std::string text;
    square() : text(50, 's') {}
    std::string name() const override { return text + text; }
};

inline __attribute__((always_inline)) void* innermost(std::size_t bytes)
{
    void* block = std::malloc(bytes);
    last = block;
    return block;
}
inline __attribute__((always_inline)) void* middle(std::size_t bytes)
{
    return innermost(bytes + 1);
}
__attribute__((noinline)) void leaf(std::size_t bytes)
{
    std::free(middle(bytes));
}

static int tree(int depth)
{
    std::unique_ptr<int[]> const here(new int[static_cast<unsigned>(depth) + 1]);
    here[0] = depth;
    return depth == 0 ? 1 : tree(depth - 1) + tree(depth - 1) + here[0];
}

__attribute__((noinline)) static int checked(int number)
{
    if (number < 0) [[unlikely]]
        throw std::runtime_error("a negative number: " + std::to_string(number));
    return number;
}

} // namespace orders

extern "C" __attribute__((noinline)) int c_function(int count)
{
    int sum = 0;
    for (int i = 1; i <= count; ++i) {
        char* const text = static_cast<char*>(std::calloc(static_cast<unsigned>(i), 3));
        sum += text[0] + std::snprintf(text, 3, "%d", i);
        std::free(text);
    }
    return sum;
}

namespace {

int compare(const void* a, const void* b)
{
    std::vector<int> const both{*static_cast<int const*>(a), *static_cast<int const*>(b)};
    last = const_cast<int*>(both.data());
    return both[0] - both[1];
}

struct visitor {
    std::map<std::string, int> seen;
    int operator()(std::string const& word) { return ++seen[word + " is a long word, too long"]; }
};

} // namespace

int main(int count, char** words)
{
    orders::queue<std::string> names;
    for (int i = 0; i < 20; ++i)
        names.add("a name that is too long for a string itself " + std::to_string(i * count));
    visitor visit;
    names.each([&](std::string& name) { visit(name); });
    std::function<int(int)> const add = [&](int i) {
        std::vector<double> v(static_cast<unsigned>(i));
        return static_cast<int>(v.size()) + visit(words[0]);
    };
    int sum = add(5) + c_function(10) + orders::tree(4);
    for (std::size_t i = 0; i < 10; ++i)
        orders::leaf(i * 100);
    std::vector<std::unique_ptr<orders::shape>> shapes;
    shapes.push_back(std::make_unique<orders::circle>());
    shapes.push_back(std::make_unique<orders::square>());
    for (auto const& shape : shapes)
        sum += static_cast<int>(shape->name().size());
    try {
        sum += orders::checked(count) + orders::checked(-count);
    } catch (std::runtime_error const& error) {
        sum += error.what()[0];
    }
    int numbers[] = {5, 3, 8, 1, 9, 2};
    std::qsort(numbers, std::size(numbers), sizeof(int), compare);
    std::sort(numbers, numbers + 6, [](int a, int b) { return compare(&a, &b) > 0; });
    return sum == 0;
}
