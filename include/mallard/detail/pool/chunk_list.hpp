// The chunks of one pool. The list requests chunks from the source, finds chunks by address, and
// returns chunks.
#pragma once

#include <mallard/detail/pool/chunk_layout.hpp>

#include <utility>

namespace mallard {

/// A treap (a randomised search tree) that finds the chunk of an address in O(log chunks) expected
/// time. The links are in the chunks themselves, so an insertion needs no memory and cannot fail.
///
/// `Node` has `left`, `right`, `begin()` and `end()`. A node nearer to the root has a larger
/// priority, which is a hash of the node's address. Chunks are often added in address order. A
/// plain search tree would then become a list, but the priorities keep this tree balanced. (Seidel
/// and Aragon, "Randomized search trees", 1996.)
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

    /// Returns the node with begin() <= p < end(), or null.
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
        // Every node from here down has a lower priority. Split these nodes around the address.
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
    void for_each(auto f) const { visit(root_, f); }

    /// Empties the tree. Returns the nodes as a list in address order, linked through `right`.
    Node* flatten() noexcept
    {
        Node* first = nullptr;
        prepend(std::exchange(root_, nullptr), first);
        return first;
    }

private:
    static std::uintptr_t priority(const Node* node) noexcept
    {
        // Multiplies by 2^64 divided by the golden ratio, twice. After one multiplication, nodes at
        // a distance of a Fibonacci number would have ordered priorities, and the tree would be a
        // list.
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

/// The chunks of a pool, which all have the same layout. Each function that needs the source gets
/// it as an argument.
template <pool_options Options, header_shape Tail = header_shape{0}>
class chunk_list : public chunk_layout<Options, Tail> {
    using layout_type = chunk_layout<Options, Tail>;

    struct some_owner {
        void* is = nullptr;
    };
    struct no_owner {
        static constexpr void* is = nullptr;
    };

    // The unused end of the memory that the last request to the source returned. It consists of
    // whole chunks that have no header yet.
    struct rest {
        std::byte* next = nullptr;
        std::byte* end = nullptr;
        std::size_t bytes() const noexcept { return static_cast<std::size_t>(end - next); }
    };
    // Used instead of `rest` when each request to the source is for one chunk.
    struct no_rest {
        constexpr no_rest() noexcept = default;
        constexpr no_rest(rest) noexcept {}
        constexpr operator rest() const noexcept { return {}; }
    };

public:
    using layout_type::by_mask;
    using layout_type::single_chunk;
    using typename layout_type::place;

    constexpr explicit chunk_list(slot_shape shape, growth_argument<Options.grow> rule) noexcept
        : layout_type(shape, growth_state<Options.grow>(rule).limit()), growth_(rule)
    {
    }
    constexpr chunk_list(chunk_list&& other) noexcept
        : layout_type(other), chunks_(std::move(other.chunks_)),
          rest_(std::exchange(other.rest_, rest())),
          growth_(std::exchange(other.growth_, other.growth_.anew()))
    {
    }

    constexpr growth_state<Options.grow>& growth() noexcept { return growth_; }
    constexpr const growth_state<Options.grow>& growth() const noexcept { return growth_; }

    /// Writes `owner` to every chunk, and to every chunk that is added later.
    constexpr void set_owner(void* owner) noexcept
        requires(Options.owned)
    {
        owner_.is = owner;
        if (chunks_.root() != nullptr)
            chunks_.for_each([owner](pool_chunk& c) { c.owner = owner; });
    }

    /// Returns the chunk that `p` points into, or null.
    pool_chunk* find(const void* p) const noexcept { return chunks_.find(p); }

    /// Returns the chunk and slot of a block in this pool, found by a mask or else by a search.
    place place_of(void* block) const noexcept
    {
        if constexpr (by_mask) {
            return layout_type::place_of(block);
        } else {
            pool_chunk* const c = single_chunk ? chunks_.root() : chunks_.find(block);
            return {c, this->slot_of(c, block)};
        }
    }

    /// Returns a function object that works like `place_of`, with a copy of the layout. Because of
    /// the copy, the compiler need not load the layout again after the caller has written to a
    /// bitmap.
    auto finder() const noexcept
    {
        if constexpr (by_mask)
            return [layout = layout_type(*this)](void* b) { return layout.place_of(b); };
        else
            return [this](void* b) { return place_of(b); };
    }

    void for_each(auto f) const { chunks_.for_each(f); }

    /// Adds a chunk, from what is left of the last request to the source, or from a new request.
    /// Returns null or throws, and changes nothing, if the source is exhausted.
    template <bool Throws, class Source>
    MALLARD_COLD pool_chunk* add_chunk(Source& source) noexcept(!Throws)
    {
        chunk taken;
        rest left = rest_;
        if (left.next == left.end) {
            taken = take_chunks<Throws>(source);
            if (taken.data == nullptr)
                return nullptr;
            left.next = static_cast<std::byte*>(taken.data);
            left.end = left.next + taken.bytes;
        }
        pool_chunk* const c = this->make_chunk(left.next, left.bytes());
        left.next += this->bytes_of_chunk(left.bytes());
        rest_ = left;
        c->source_chunk = taken;
        c->owner = owner_.is;
        chunks_.insert(c);
        return c;
    }

    /// Returns idle memory to the source, except for `keep` bytes. The memory of one request to the
    /// source is returned as a whole, when all its chunks are idle.
    template <class Source, class IsIdle>
    void give_idle(Source& source, std::size_t keep, IsIdle is_idle) noexcept
    {
        pool_chunk* c = chunks_.flatten();
        while (c != nullptr) {
            pool_chunk* const first = c; // the first chunk of a request to the source, in address
                                         // order
            chunk const taken = first->source_chunk;
            std::byte* const end = static_cast<std::byte*>(taken.data) + taken.bytes;
            bool idle = true;
            for (; c != nullptr && c->begin() < end; c = c->right)
                idle = idle && is_idle(*c);
            if (idle && taken.bytes > keep) {
                std::byte* const left = rest(rest_).end;
                if (taken.data < left && left <= end)
                    rest_ = rest();
                // The analyzer mistakes two steps for one. NOLINTNEXTLINE(*-cplusplus.NewDelete)
                unpoison<layout_type::checks_on>(taken.data, taken.bytes);
                growth_.gave(taken.bytes);
                give(source, taken);
                continue;
            }
            if (idle)
                keep -= taken.bytes;
            for (pool_chunk* kept = first; kept != c;)
                chunks_.insert(std::exchange(kept, kept->right));
        }
    }

    template <class Source>
    void release(Source& source) noexcept
    {
        give_idle(source, 0, [](const pool_chunk&) { return true; });
        growth_.restart();
    }

    /// Discards all chunks without returning them. Called when the source frees all of its memory
    /// in one call.
    void forget() noexcept
    {
        chunks_ = {};
        rest_ = rest();
        growth_.restart();
    }

    void add_to(statistics& s) const noexcept
    {
        s.bytes_idle += rest(rest_).bytes();
        s.bytes_taken += growth_.taken();
        s.growths += growth_.steps();
    }

private:
    template <bool Throws, class Source>
    chunk take_chunks(Source& source) noexcept(!Throws)
    {
        layout const least = this->least_chunk();
        if (least.bytes > bytes_max / 2)
            return refuse_absurd<Throws>(source, least);
        // A pool of one chunk requests no second chunk, even if the first is smaller than
        // requested.
        if (single_chunk && chunks_.root() != nullptr) {
            if constexpr (Throws)
                throw_bad_alloc();
            return {};
        }
        // Requests a chunk of full length, or all bytes that the limit has left if these are fewer.
        std::size_t const most = std::min(this->whole_bytes(), growth_.left());
        return take_step<Throws>(
            source, growth_, least, std::max(most, least.bytes),
            [this](std::size_t bytes) { return this->useful_bytes(bytes, growth_.is_limited()); });
    }

    chunk_tree<pool_chunk> chunks_;
    [[no_unique_address]] std::conditional_t<by_mask, rest, no_rest> rest_;
    growth_state<Options.grow> growth_;
    [[no_unique_address]] std::conditional_t<Options.owned, some_owner, no_owner> owner_;
};

} // namespace mallard
