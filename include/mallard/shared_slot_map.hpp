// A slot map for several threads.
#pragma once

#include <mallard/detail/slots/shared_slots.hpp>
#include <mallard/pool.hpp>

#include <array>
#include <cstring>
#include <optional>

namespace mallard {

struct shared_slot_map_options {
    std::size_t bytes_max = std::size_t{1} << 36; ///< of address space for the elements
    check checks = check::off;                    ///< verify that no guard outlives the map
};

/// A `slot_map` that any thread may use at any time.
///
///     mallard::shared_slot_map<session> sessions;
///     mallard::key64 const id = sessions.insert({"Ada"});
///     if (auto const s = sessions.get(id)) // a guard: the session stays while it lives
///         s->touch();
///     sessions.remove(id); // stale at once; it ends with its last guard
///
/// Three ways to an element, none of which waits for another thread:
///   get(key)      a guard: two locked operations
///   with(key, f)  calls f(element) under one
///   read(key)     a copy, if T is trivially copyable: no locked operation. An element is
///                 then what its insert made: changing it through a guard tears the copy
///
/// Elements stay where they are. Guards keep an element, not others from using it too:
/// what several threads write is synchronised by the element itself. A removed element is
/// destroyed by the thread that ends its last guard; constructors, destructors and `f` may
/// use the map, and no lock is held meanwhile.
///
/// Slots come from a pool with a front for each thread (`sync::thread_cached`), so inserts
/// and removes touch what other threads write only when a front has run empty or full.
/// Each element costs 16 bytes beside its own, which are rounded up to 8. Memory is kept
/// until the end of the map. A slot retires when its generations are used up.
///
/// `insert` and `emplace` throw `std::bad_alloc`, `try_emplace` gives the null key, when
/// memory or a slot is refused. A call that fails or throws has changed nothing. The end of
/// the map is for one thread alone, and no guard outlives it. Neither copied nor moved.
/// Needs the library.
template <class T, class Key = key64, shared_slot_map_options Options = shared_slot_map_options{}>
class shared_slot_map {
    static_assert(Key::generation_bits <= 32 && Key::index_bits <= 32,
                  "the state of a shared slot has 32 bits for a generation");
    static_assert(Key::index_bits >= 16, "threads take slots a chunk at a time");

    static constexpr slot_shape shape = slot_shape::of(sizeof(T), alignof(T), sizeof(void*));
    using slots = shared_slots<shape.bytes, Key::index_mask, Options.bytes_max>;
    using block_pool =
        pool<slots,
             pool_options{.block = sizeof(T), .align = alignof(T), .threads = sync::thread_cached}>;
    static constexpr bool copyable = std::is_trivially_copyable_v<T>;

public:
    using key_type = Key;
    using value_type = T;

    class guard;

    shared_slot_map() = default;
    shared_slot_map(const shared_slot_map&) = delete;
    shared_slot_map& operator=(const shared_slot_map&) = delete;
    ~shared_slot_map()
    {
        if constexpr (!std::is_trivially_destructible_v<T> || Options.checks == check::on)
            pool_.for_each([this](void* block) { end_element(at(number_of(block)), block); });
    }

    Key insert(T value) { return emplace(std::move(value)); }
    template <class... Args>
    Key emplace(Args&&... args)
    {
        return place(pool_.allocate(), std::forward<Args>(args)...);
    }
    template <class... Args>
    [[nodiscard]] Key try_emplace(Args&&... args)
    {
        void* const block = pool_.try_allocate();
        return block == nullptr ? Key() : place(block, std::forward<Args>(args)...);
    }

    /// False when the key names nothing.
    [[nodiscard]] guard get(Key k) noexcept
    {
        shared_slot* const slot = slot_of(k);
        return slot != nullptr && slot->try_hold(k.generation()) ? guard(*this, *slot) : guard();
    }

    /// A copy, or nothing.
    [[nodiscard]] std::optional<T> read(Key k) const noexcept
        requires copyable
    {
        shared_slot* const slot = slot_of(k);
        if (slot == nullptr || !is_live(*slot, k, std::memory_order_acquire))
            return {};
        bytes const copy = load(slot->value);
        if (!is_live(*slot, k, std::memory_order_relaxed))
            return {};
        return std::bit_cast<T>(copy);
    }

    /// False when the key names nothing; else `f(element)` was called.
    template <std::invocable<T&> F>
    bool with(Key k, F f)
    {
        guard const held = get(k);
        if (held)
            f(*held);
        return bool(held);
    }

    /// At this moment.
    [[nodiscard]] bool contains(Key k) const noexcept
    {
        shared_slot* const slot = slot_of(k);
        return slot != nullptr && is_live(*slot, k, std::memory_order_relaxed);
    }

    /// True for one caller alone: the key is stale from now on.
    bool remove(Key k) noexcept
    {
        shared_slot* const slot = slot_of(k);
        if (slot == nullptr)
            return false;
        auto const removed = slot->try_remove(k.generation());
        if (removed == shared_slot::removal::alone)
            finish(*slot);
        return removed != shared_slot::removal::refused;
    }

    /// Calls `f(key, element)` under a guard for each element. Elements that other threads insert
    /// or remove during the call may be visited or not. `f` may insert and remove as well; an
    /// element that `f` removes before its turn is not visited. O(slots ever used).
    template <std::invocable<Key, T&> F>
    void for_each(F f)
    {
        for (std::size_t i = 1; i < pool_.upstream().end(); ++i) {
            auto const s = at(i)->state.load(std::memory_order_relaxed);
            Key const k = key_of(i, shared_slot::generation(s));
            if (guard const held = get(k))
                f(k, *held);
        }
    }

    /// Removes all that are there when it is called.
    void clear() noexcept
    {
        for_each([this](Key k, T&) { remove(k); });
    }

    /// Those that were removed and still have guards are counted. Walks all threads' fronts.
    [[nodiscard]] std::size_t size() const noexcept { return stats().blocks_live; }
    [[nodiscard]] std::size_t retired() const noexcept
    {
        return retired_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] statistics stats() const noexcept
    {
        std::size_t const gone = retired(); // first: to the pool they are in use
        statistics s = pool_.stats();
        s.blocks_live -= gone;
        s.bytes_live -= gone * shape.bytes;
        s.bytes_taken += pool_.upstream().bytes();
        return s;
    }

private:
    using bytes = std::array<std::byte, sizeof(T)>;
    using memory_word = std::uint64_t; // of which a block is a multiple

    shared_slot* at(std::size_t number) const noexcept { return pool_.upstream().at(number); }
    std::size_t number_of(const void* block) const noexcept
    {
        return pool_.upstream().number_of(block);
    }
    /// Null: the key is of no slot. For keys of 32 or 64 bits the first test is none.
    shared_slot* slot_of(Key k) const noexcept
    {
        return k.value() > Key::value_max ? nullptr : at(k.index());
    }
    static Key key_of(std::size_t number, std::size_t generation) noexcept
    {
        return Key(static_cast<typename Key::raw_type>(generation << Key::index_bits | number));
    }
    static bool is_live(const shared_slot& slot, Key k, std::memory_order order) noexcept
    {
        return shared_slot::is_live(slot.state.load(order), k.generation());
    }

    template <class... Args>
    Key place(void* block, Args&&... args)
    {
        struct give_back {
            block_pool& to;
            void* block;
            ~give_back()
            {
                if (block != nullptr)
                    to.deallocate(block);
            }
        } unless_made{pool_, block};
        if constexpr (copyable)
            store(block, std::bit_cast<bytes>(T(std::forward<Args>(args)...)));
        else
            ::new (block) T(std::forward<Args>(args)...);
        unless_made.block = nullptr;

        std::size_t const number = number_of(block);
        shared_slot& slot = *at(number);
        std::size_t generation =
            shared_slot::generation(slot.state.load(std::memory_order_relaxed));
        if (generation == 0) { // never used
            generation = 1;
            slot.value = block;
        }
        slot.state.store(shared_slot::of(generation) | shared_slot::live,
                         std::memory_order_release);
        return key_of(number, generation);
    }

    /// By the thread that alone has the slot.
    void finish(shared_slot& slot) noexcept
    {
        constexpr std::size_t generation_max = Key::value_max >> Key::index_bits;
        std::destroy_at(static_cast<T*>(slot.value));
        auto const s = slot.state.load(std::memory_order_relaxed);
        if (shared_slot::generation(s) == generation_max) {
            retired_.fetch_add(1, std::memory_order_relaxed);
            return;
        }
        slot.state.store(s + shared_slot::of(1), std::memory_order_relaxed);
        pool_.deallocate(slot.value); // who allocates it next sees all of the above
    }

    void end_element(shared_slot* slot, void* block) noexcept
    {
        auto const s = slot->state.load(std::memory_order_relaxed);
        if (Options.checks == check::on && (s & shared_slot::guards) != 0)
            fatal_guarded_element(block);
        if ((s & shared_slot::live) != 0) { // else retired
            slot->state.store(s & ~shared_slot::live, std::memory_order_relaxed);
            std::destroy_at(static_cast<T*>(block)); // which may remove others
        }
    }

    static void store(void* to, const bytes& from) noexcept
    {
        for (std::size_t i = 0; i < sizeof(T); i += sizeof(memory_word)) {
            memory_word w = 0;
            std::memcpy(&w, from.data() + i, std::min(sizeof w, sizeof(T) - i));
            std::atomic_ref(static_cast<memory_word*>(to)[i / sizeof w])
                .store(w, std::memory_order_release);
        }
    }
    /// Perhaps of a block that is free by now, which AddressSanitizer must not mind.
    [[gnu::no_sanitize_address]] static bytes load(const void* from) noexcept
    {
        bytes to;
        for (std::size_t i = 0; i < sizeof(T); i += sizeof(memory_word)) {
            memory_word const w = __atomic_load_n(
                static_cast<const memory_word*>(from) + i / sizeof(w), __ATOMIC_ACQUIRE);
            std::memcpy(to.data() + i, &w, std::min(sizeof w, sizeof(T) - i));
        }
        return to;
    }

    block_pool pool_;
    std::atomic<std::size_t> retired_ = 0;
};

/// Keeps one element, whoever removes it meanwhile. For one thread at a time; it may end
/// in another thread than it began.
template <class T, class Key, shared_slot_map_options Options>
class shared_slot_map<T, Key, Options>::guard {
public:
    guard() noexcept = default;
    guard(guard&& other) noexcept
        : map_(std::exchange(other.map_, nullptr)), slot_(std::exchange(other.slot_, nullptr))
    {
    }
    guard& operator=(guard&& other) noexcept
    {
        guard before(std::move(other));
        std::swap(map_, before.map_);
        std::swap(slot_, before.slot_);
        return *this;
    }
    ~guard() { reset(); }

    explicit operator bool() const noexcept { return slot_ != nullptr; }
    T& operator*() const noexcept { return *static_cast<T*>(slot_->value); }
    T* operator->() const noexcept { return static_cast<T*>(slot_->value); }

    /// Lets the element go.
    void reset() noexcept
    {
        shared_slot* const slot = std::exchange(slot_, nullptr);
        if (slot != nullptr && slot->let_go())
            map_->finish(*slot);
    }

private:
    friend class shared_slot_map;
    guard(shared_slot_map& map, shared_slot& slot) noexcept : map_(&map), slot_(&slot) {}

    shared_slot_map* map_ = nullptr;
    shared_slot* slot_ = nullptr;
};

} // namespace mallard
