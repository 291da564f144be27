// The chunks of a pool by address: which one holds this pointer?
#pragma once

#include <mallard/detail/base/bits.hpp>

#include <utility>

namespace mallard {

/// A treap threaded through the chunks themselves: O(log chunks) expected to
/// find, no memory of its own, so it can neither fail nor be half grown.
///
/// `Node` has `left`, `right`, `begin()` and `end()`. The node nearer the root
/// has the larger priority, a hash of its address; chunks come in ascending
/// order, which would make a plain search tree a list. (Seidel and Aragon,
/// "Randomized search trees", 1996.)
template <class Node>
class chunk_tree {
public:
    constexpr chunk_tree() noexcept = default;
    constexpr chunk_tree(chunk_tree&& other) noexcept : root_(std::exchange(other.root_, nullptr))
    {
    }
    constexpr chunk_tree& operator=(chunk_tree&& other) noexcept
    {
        root_ = std::exchange(other.root_, nullptr);
        return *this;
    }

    constexpr Node* root() const noexcept { return root_; }

    /// The node with begin() <= p < end(), or null.
    Node* find(const void* pointer) const noexcept
    {
        auto const* const p = static_cast<const std::byte*>(pointer);
        Node* at = root_;
        while (at != nullptr && !(at->begin() <= p && p < at->end()))
            at = p < at->begin() ? at->left : at->right;
        return at;
    }

    void insert(Node* node) noexcept
    {
        Node** link = &root_;
        while (*link != nullptr && priority(*link) >= priority(node))
            link = node < *link ? &(*link)->left : &(*link)->right;
        // Below here everything ranks under `node`: split it around the address.
        Node* rest = std::exchange(*link, node);
        Node** smaller = &node->left;
        Node** larger = &node->right;
        while (rest != nullptr) {
            if (rest < node) {
                *smaller = rest;
                smaller = &rest->right;
                rest = *smaller;
            } else {
                *larger = rest;
                larger = &rest->left;
                rest = *larger;
            }
        }
        *smaller = *larger = nullptr;
    }

    /// Calls `f` for each node in address order.
    template <class F>
    void for_each(F f) const
    {
        visit(root_, f);
    }

    /// Empties the tree. Its nodes become a list through `right`, in address order.
    Node* flatten() noexcept
    {
        Node* first = nullptr;
        prepend(std::exchange(root_, nullptr), first);
        return first;
    }

private:
    static std::uintptr_t priority(const Node* node) noexcept
    {
        // The golden ratio in 64 bits, twice: one product alone is in order for
        // nodes that stand a Fibonacci number apart, and the tree would be a list.
        constexpr std::uintptr_t golden = 0x9e3779b97f4a7c15u;
        std::uintptr_t const mixed = reinterpret_cast<std::uintptr_t>(node) * golden;
        return (mixed ^ (mixed >> 32)) * golden;
    }

    template <class F>
    static void visit(Node* at, F& f)
    {
        if (at == nullptr)
            return;
        visit(at->left, f);
        f(*at);
        visit(at->right, f);
    }

    static void prepend(Node* at, Node*& first) noexcept
    {
        if (at == nullptr)
            return;
        prepend(at->right, first);
        at->right = std::exchange(first, at);
        prepend(at->left, first);
    }

    Node* root_ = nullptr;
};

} // namespace mallard
