#include <mallard/detail/pool/chunk_list.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <random>
#include <vector>

namespace {

struct node {
    std::size_t bytes = sizeof(node);
    node* left = nullptr;
    node* right = nullptr;
    std::byte* begin() const { return reinterpret_cast<std::byte*>(const_cast<node*>(this)); }
    std::byte* end() const { return begin() + bytes; }
};
using tree = mallard::chunk_tree<node>;

/// Nodes at equal distances, each `bytes` long.
class row {
public:
    row(std::size_t count, std::size_t stride, std::size_t bytes = sizeof(node))
        : memory_(new std::byte[count * stride])
    {
        for (std::size_t i = 0; i < count; ++i)
            nodes.push_back(::new (memory_.get() + i * stride) node{bytes});
    }
    std::vector<node*> nodes;

private:
    std::unique_ptr<std::byte[]> memory_; // not cleared, because most of it is never touched
};

std::vector<node*> ascending(const tree& t)
{
    std::vector<node*> seen;
    t.for_each([&](node& n) { seen.push_back(&n); });
    return seen;
}

std::size_t depth(const node* root)
{
    std::vector<std::pair<const node*, std::size_t>> open{{root, 1}};
    std::size_t deepest = 0;
    while (!open.empty()) {
        auto const [at, level] = open.back();
        open.pop_back();
        if (at == nullptr)
            continue;
        deepest = std::max(deepest, level);
        open.push_back({at->left, level + 1});
        open.push_back({at->right, level + 1});
    }
    return deepest;
}

TEST(chunk_tree, finds_nothing_while_it_is_empty)
{
    tree const empty;
    int const stranger = 0;
    EXPECT_EQ(empty.find(&stranger), nullptr);
    EXPECT_EQ(empty.find(nullptr), nullptr);
    EXPECT_TRUE(ascending(empty).empty());
}

TEST(chunk_tree, finds_the_node_that_contains_an_address_or_none)
{
    row of(200, 128, 96);
    std::vector<node*> shuffled = of.nodes;
    std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(1));
    tree t;
    for (node* const n : shuffled)
        t.insert(n);
    for (node* const n : of.nodes) {
        EXPECT_EQ(t.find(n->begin()), n);
        EXPECT_EQ(t.find(n->begin() + 50), n);
        EXPECT_EQ(t.find(n->end() - 1), n);
        EXPECT_EQ(t.find(n->end()), nullptr);
        EXPECT_EQ(t.find(n->begin() - 1), nullptr);
    }
}

TEST(chunk_tree, visits_nodes_in_address_order_whatever_the_order_of_insertion)
{
    row of(500, 64);
    std::vector<node*> shuffled = of.nodes;
    for (unsigned seed = 0; seed < 20; ++seed) {
        std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(seed));
        tree t;
        for (node* const n : shuffled)
            t.insert(n);
        ASSERT_EQ(ascending(t), of.nodes);
    }
}

TEST(chunk_tree, becomes_a_list_in_address_order_and_a_tree_again)
{
    row of(300, 64);
    tree t;
    for (node* const n : of.nodes)
        t.insert(n);
    std::vector<node*> listed;
    for (node* n = t.flatten(); n != nullptr;) {
        listed.push_back(n);
        node* const next = n->right;
        t.insert(n); // inserts a node during the iteration, as trim does
        n = next;
    }
    EXPECT_EQ(listed, of.nodes);
    EXPECT_EQ(ascending(t), of.nodes);
}

TEST(chunk_tree, is_empty_after_a_move)
{
    row of(10, 64);
    tree t;
    for (node* const n : of.nodes)
        t.insert(n);
    tree u(std::move(t));
    EXPECT_EQ(t.root(), nullptr);
    EXPECT_EQ(ascending(u), of.nodes);
    t = std::move(u);
    EXPECT_EQ(ascending(t), of.nodes);
}

// Chunks of one pool often have equal distances and ascending addresses. 144, 2584 and 46368 are
// Fibonacci numbers. With them, one multiplication by the golden ratio gives no random order.
TEST(chunk_tree, stays_shallow_whatever_the_distances_between_chunks_are)
{
    constexpr std::size_t count = 1000; // log2 is 10
    for (std::size_t const stride : {64, 144, 1040, 2584, 4096, 8288, 32768, 46368, 65536, 65552}) {
        row of(count, stride);
        tree up, down;
        for (std::size_t i = 0; i < count; ++i)
            up.insert(of.nodes[i]);
        EXPECT_LE(depth(up.root()), 60U) << stride;
        for (std::size_t i = count; i-- > 0;)
            down.insert(of.nodes[i]);
        EXPECT_LE(depth(down.root()), 60U) << stride;
    }
}

} // namespace
