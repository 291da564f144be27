// Calls `parse_document` 50 times. Every second call throws an exception, which `main` catches. In
// both cases, a destructor frees the nodes of the document.
#include <cstdlib>
#include <memory>
#include <vector>

static void* volatile title;

[[gnu::noinline]] static std::size_t parse_document(int document)
{
    std::vector<std::unique_ptr<int>> nodes;
    for (int i = 0; i < 100 + document % 7; ++i) {
        if (document % 2 == 1 && i == 60)
            throw document;
        nodes.push_back(std::make_unique<int>(i));
    }
    return nodes.size();
}

int main()
{
    std::size_t sum = 0;
    for (int document = 0; document < 50; ++document) {
        // A call of malloc between two calls of a function makes them distinguishable in call
        // stacks.
        title = std::malloc(30);
        std::free(title);
        try {
            sum += parse_document(document);
        } catch (int) {
        }
    }
    return sum == 0;
}
