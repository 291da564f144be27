// A slot map for several threads.
#pragma once

#include <mallard/detail/base/atomic_ref.hpp>
#include <mallard/detail/base/fatal_objects.hpp>
#include <mallard/detail/base/undo.hpp>
#include <mallard/key.hpp>
#include <mallard/pages.hpp>
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

#include <array>
#include <atomic>
#include <cstring>
#include <optional>

namespace mallard {

/// The state of a slot in a `shared_slot_map`. It is one atomic word, which all threads read and
/// change. States are stored apart from the elements and exist until the map is destroyed, so any
/// key can be looked up safely, even after its element is gone.
///
///     state   { generation 32 | live 1 | guards 31 }
///
///     { 0, 0, 0 }   never used
///     { g, 0, 0 }   owned by one thread, which constructs or destroys the element, or frees
///                   the slot; or the slot is retired
///     { g, 1, n }   the element of generation g is alive and has n guards
///     { g, 0, n }   the element was removed; n guards still use it
///
///     insert   { g, 0, 0 } -> { g, 1, 0 }   a store by the owning thread
///     get      { g, 1, n } -> { g, 1, n+1 } a compare-exchange of the whole word, so that
///                                           generation and "live" hold when the guard is counted
///     remove   { g, 1, n } -> { g, 0, n }   a compare-exchange
///     a guard's end     n  -> n-1           a subtraction
///     finish   { g, 0, 0 } -> { g+1, 0, 0 } a store by the thread that reached { g, 0, 0 }
///
/// The operations are linearisable. Each operation takes effect at the change listed here or, if it
/// fails, at its load of the state. Only remove clears "live". After a remove, no get succeeds, so
/// the number of guards only decreases. Then exactly one change leads to { g, 0, 0 }, and the
/// thread that makes this change owns the slot. tests/models/shared_slot.pml is a model of this
/// protocol.
///
/// `read` copies the element between two loads of the state. Between these loads, another thread
/// may remove the element, and insert another element in the slot. `insert` stores the words of an
/// element with release, and `read` loads them with acquire. So if `read` has copied a word of the
/// later element, the second load of the state shows that the first element was removed, and `read`
/// discards the copy.
class shared_slot {
public:
    using word = std::uint64_t; ///< generation, whether the slot is live, and number of guards

    static constexpr word live = word{1} << 31; ///< the bit of a live element
    static constexpr word guards = live - 1;    ///< selects the number of guards

    /// Returns the word for this generation, neither live nor guarded.
    static constexpr word of(std::size_t generation) noexcept { return word{generation} << 32; }
    /// Returns the generation of a word.
    static constexpr std::size_t generation(word s) noexcept { return s >> 32; }
    /// Returns whether the slot holds a live element of this generation.
    static constexpr bool is_live(word s, std::size_t generation) noexcept
    {
        return (s & ~guards) == (of(generation) | live);
    }

    /// Adds a guard. Returns false when the element is not alive.
    bool try_hold(std::size_t generation) noexcept
    {
        word s = state.load(std::memory_order_relaxed);
        while (is_live(s, generation))
            if (state.compare_exchange_weak(s, s + 1, std::memory_order_acquire,
                                            std::memory_order_relaxed))
                return true;
        return false;
    }
    /// Ends a guard. Returns true if it was the last guard of a removed element; the caller then
    /// owns the slot.
    bool let_go() noexcept
    {
        return (state.fetch_sub(1, std::memory_order_acq_rel) & (live | guards)) == 1;
    }

    /// The possible results of `try_remove`.
    enum class removal {
        not_found,      ///< no element has this key
        left_to_guards, ///< the last guard will destroy the element
        owned           ///< the caller owns the slot
    };
    /// Marks the element of this generation as removed. Any thread may call this function.
    removal try_remove(std::size_t generation) noexcept
    {
        word s = state.load(std::memory_order_relaxed);
        while (is_live(s, generation))
            if (state.compare_exchange_weak(s, s & ~live, std::memory_order_acq_rel,
                                            std::memory_order_relaxed))
                return (s & guards) == 0 ? removal::owned : removal::left_to_guards;
        return removal::not_found;
    }

    std::atomic<word> state; ///< a `word`
    void* value; ///< where the slot's elements are; written once, before the first element is live
};

/// The source of the pool in a `shared_slot_map`. All chunks with blocks are in one range of
/// address space, so the number of a block can be computed from its address. `Stride` is the size
/// of a block in bytes. A second range has a `shared_slot` for each block. Other memory of the pool
/// comes from ordinary pages. Any thread may call `at` and `end`; the other functions are called by
/// one thread at a time.
template <std::size_t Stride, std::size_t SlotsMax, std::size_t BytesMax>
class shared_slots {
public:
    shared_slots() = default;
    shared_slots(const shared_slots&) = delete;
    shared_slots& operator=(const shared_slots&) = delete;

    /// Maps a chunk of slots, or other memory for the pool. Returns null if there is no memory.
    chunk try_take(layout l) noexcept
    {
        if (!is_numbered(l.align))
            return beside_.try_take(l);
        if (base_ != nullptr)
            return take_with_slots(l);
        // If the system cannot reserve the range, tries a quarter of its size, and so on.
        for (std::size_t bytes = bytes_max;; bytes /= 4) {
            values_ = os::page_source({.reserve_bytes = bytes});
            slots_ = os::growing_range((bytes / Stride + 2) * sizeof(shared_slot));
            chunk const taken = take_with_slots(l);
            if (taken.data != nullptr || bytes <= bytes_first)
                return taken;
        }
    }
    /// Returns a chunk to the system.
    void give(chunk c) noexcept { (is_numbered(c.align) ? values_ : beside_).give(c); }

    /// Returns the number of a block. The first number is 1.
    std::size_t number_of(const void* block) const noexcept
    {
        return static_cast<std::size_t>(static_cast<const std::byte*>(block) - base_) / Stride + 1;
    }
    /// Returns the slot with a number, or null when there is no such slot.
    shared_slot* at(std::size_t number) const noexcept
    {
        return number < end_.load(std::memory_order_acquire) ? slots() + number : nullptr;
    }
    /// Returns the last block number plus one.
    std::size_t end() const noexcept { return end_.load(std::memory_order_acquire); }
    std::size_t bytes() const noexcept { return slots_.bytes(); } ///< bytes of committed slots

private:
    static constexpr std::size_t bytes_first = std::size_t{1} << 21;
    // Rounded down to whole pages. Otherwise the range would be rounded up, and could have more
    // than SlotsMax blocks.
    static constexpr std::size_t bytes_max =
        std::min(BytesMax, saturating_mul(SlotsMax, Stride)) / page_bytes * page_bytes;

    /// Returns whether a chunk has numbered blocks. Only chunks with blocks are aligned to more
    /// than a page.
    static constexpr bool is_numbered(std::size_t align) noexcept { return align > page_bytes; }

    /// Maps a chunk, and commits a slot for each block that the chunk may hold.
    chunk take_with_slots(layout l) noexcept
    {
        chunk const taken = values_.try_take(l);
        if (taken.data == nullptr)
            return {};
        auto* const begin = static_cast<std::byte*>(taken.data);
        // The first chunk sets the base of the range of addresses.
        std::byte* const base = base_ == nullptr ? begin : base_;
        std::size_t const end = static_cast<std::size_t>(begin + taken.bytes - base) / Stride + 2;
        if (!slots_.commit(end * sizeof(shared_slot), 1)) {
            values_.give(taken);
            return {};
        }
        if (base_ == nullptr) // written once, because other threads may read it from now on
            base_ = base;
        if (end > end_.load(std::memory_order_relaxed))
            end_.store(end, std::memory_order_release);
        return taken;
    }

    /// Returns the first slot. New pages are zero, which is the state of a slot that was never
    /// used.
    shared_slot* slots() const noexcept { return reinterpret_cast<shared_slot*>(slots_.begin()); }

    os::page_source values_{{}};
    os::page_source beside_{{}};
    os::growing_range slots_;
    std::byte* base_ = nullptr;
    std::atomic<std::size_t> end_ = 0;
};

/// Options of `shared_slot_map`.
///
///     constexpr mallard::shared_slot_map_options small{.bytes_max = 1 << 20};
///     mallard::shared_slot_map<session, mallard::key64, small> sessions;
struct shared_slot_map_options {
    std::size_t bytes_max = std::size_t{1} << 36; ///< address space for the elements
    check checks = check::off;                    ///< verify that no guard outlives the map
};

/// A `slot_map` that any thread may use at any time.
///
///     mallard::shared_slot_map<session> sessions;
///     mallard::key64 const id = sessions.insert({"Ada"});
///     if (auto const s = sessions.get(id)) // a guard: the session stays while the guard lives
///         s->touch();
///     sessions.remove(id); // the key is stale at once; the last guard destroys the session
///
/// Three functions read an element, and never wait for another thread:
///   get(key)      returns a guard; costs two atomic read-modify-writes
///   with(key, f)  calls f(element) under a guard
///   read(key)     returns a copy, without an atomic read-modify-write
///
/// `read` needs a trivially copyable T. If another thread changes the element through a guard, the
/// copy may be torn.
///
/// Elements do not move. A guard keeps an element alive, but is not a lock, so threads that use an
/// element at the same time must synchronise. The thread that destroys the last guard of a removed
/// element destroys the element. Constructors, destructors and `f` may use the map, because the map
/// holds no lock while they run.
///
/// Slots come from a pool with a cache for each thread (`sync::thread_cached`). While the cache of
/// a thread is neither empty nor full, its inserts and removes touch no memory that other threads
/// write. The size of an element is rounded up to a multiple of 8, and each element needs 16 bytes
/// more. The map keeps its memory until it is destroyed. A slot retires when its generations are
/// used up.
///
/// When no memory or no slot is left, `insert` and `emplace` throw `std::bad_alloc`, and
/// `try_emplace` returns the null key. A call that fails or throws changes nothing. When the map is
/// destroyed, there must be no guard, and no other thread may use the map. The map is neither
/// copied nor moved. Needs the compiled library.
template <class T, class Key = key64, shared_slot_map_options Options = shared_slot_map_options{}>
class shared_slot_map {
    static_assert(Key::generation_bits <= 32 && Key::index_bits <= 32,
                  "a key has at most 32 bits for the generation, and 32 for the index");
    static_assert(Key::index_bits >= 16,
                  "a key needs 16 bits for the index: threads reserve whole chunks of slots");

    static constexpr slot_shape shape = slot_shape::of(sizeof(T), alignof(T), sizeof(void*));
    using slots = shared_slots<shape.bytes, Key::index_mask, Options.bytes_max>;
    using block_pool =
        pool<slots,
             pool_options{.block = sizeof(T), .align = alignof(T), .threads = sync::thread_cached}>;
    static constexpr bool copyable = std::is_trivially_copyable_v<T>;

public:
    using key_type = Key; ///< the key of an element
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

    /// Inserts an element and returns its key.
    Key insert(T value) { return emplace(std::move(value)); }
    /// Constructs an element from `args` and returns its key.
    template <class... Args>
    Key emplace(Args&&... args)
    {
        return place(pool_.allocate(), std::forward<Args>(args)...);
    }
    /// Like `emplace`, but returns the null key when no memory or no slot is left.
    template <class... Args>
    [[nodiscard]] Key try_emplace(Args&&... args)
    {
        void* const block = pool_.try_allocate();
        return block == nullptr ? Key() : place(block, std::forward<Args>(args)...);
    }

    /// Returns a guard of the element. The guard converts to false when the key finds no element.
    [[nodiscard]] guard get(Key k) noexcept
    {
        shared_slot* const slot = slot_of(k);
        return slot != nullptr && slot->try_hold(k.generation()) ? guard(*this, *slot) : guard();
    }

    /// Returns a copy of the element, or nothing when the key finds no element.
    ///
    ///     if (std::optional<price> const p = prices.read(id)) ...
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

    /// Calls `f(element)` and returns true. Returns false when the key finds no element.
    ///
    ///     sessions.with(id, [](session& s) { s.touch(); });
    template <std::invocable<T&> F>
    bool with(Key k, F f)
    {
        guard const held = get(k);
        if (held)
            f(*held);
        return bool(held);
    }

    /// Returns whether an element with this key is in the map at this moment.
    [[nodiscard]] bool contains(Key k) const noexcept
    {
        shared_slot* const slot = slot_of(k);
        return slot != nullptr && is_live(*slot, k, std::memory_order_relaxed);
    }

    /// Removes the element, so that its key becomes stale. Returns false when the key finds no
    /// element. If several threads remove the same element, exactly one call returns true.
    bool remove(Key k) noexcept
    {
        shared_slot* const slot = slot_of(k);
        if (slot == nullptr)
            return false;
        auto const removed = slot->try_remove(k.generation());
        if (removed == shared_slot::removal::owned)
            finish(*slot);
        return removed != shared_slot::removal::not_found;
    }

    /// Calls `f(key, element)` under a guard for each element. Elements that other threads insert
    /// or remove during the call may be visited or not. `f` may insert and remove elements. An
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

    /// Removes all elements that are present when the call begins.
    void clear() noexcept
    {
        for_each([this](Key k, T&) { remove(k); });
    }

    /// Returns the number of elements, including removed elements that still have guards. Takes
    /// time proportional to the caches of all threads.
    [[nodiscard]] std::size_t size() const noexcept { return stats().blocks_live; }
    /// Returns the number of slots that have used up their generations.
    [[nodiscard]] std::size_t retired() const noexcept
    {
        return retired_.load(std::memory_order_relaxed);
    }
    /// Returns the statistics of the map. Takes time proportional to the caches of all threads.
    [[nodiscard]] statistics stats() const noexcept
    {
        // The pool counts retired slots as live. `retired()` only grows, so it is read first.
        std::size_t const gone = retired();
        statistics s = pool_.stats();
        s.blocks_live -= gone;
        s.bytes_live -= gone * shape.bytes;
        s.bytes_taken += pool_.upstream().bytes();
        return s;
    }

private:
    using bytes = std::array<std::byte, sizeof(T)>;
    using memory_word = std::uint64_t; // the size of a block is a multiple of this word's size

    shared_slot* at(std::size_t number) const noexcept { return pool_.upstream().at(number); }
    std::size_t number_of(const void* block) const noexcept
    {
        return pool_.upstream().number_of(block);
    }
    /// Returns the slot that the key addresses, or null. For keys of exactly 32 or 64 bits, the
    /// compiler removes the range test.
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
        undo unless_made([this, block] { pool_.deallocate(block); });
        if constexpr (copyable)
            store(block, std::bit_cast<bytes>(T(std::forward<Args>(args)...)));
        else
            ::new (block) T(std::forward<Args>(args)...);
        unless_made.keep();

        std::size_t const number = number_of(block);
        shared_slot& slot = *at(number);
        std::size_t generation =
            shared_slot::generation(slot.state.load(std::memory_order_relaxed));
        if (generation == 0) { // the slot was never used
            generation = 1;
            slot.value = block;
        }
        slot.state.store(shared_slot::of(generation) | shared_slot::live,
                         std::memory_order_release);
        return key_of(number, generation);
    }

    /// Destroys the element and frees its slot. The caller owns the slot.
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
        // The next thread that allocates this block sees all stores above.
        pool_.deallocate(slot.value);
    }

    /// Destroys the element of a block, if the element is still alive when the map is destroyed.
    void end_element(shared_slot* slot, void* block) noexcept
    {
        auto const s = slot->state.load(std::memory_order_relaxed);
        if (Options.checks == check::on && (s & shared_slot::guards) != 0)
            fatal_guarded_element(block);
        if ((s & shared_slot::live) != 0) { // otherwise the slot is retired
            slot->state.store(s & ~shared_slot::live, std::memory_order_relaxed);
            std::destroy_at(static_cast<T*>(block)); // the destructor may remove other elements
        }
    }

    static void store(void* to, const bytes& from) noexcept
    {
        for (std::size_t i = 0; i < sizeof(T); i += sizeof(memory_word)) {
            memory_word w = 0;
            std::memcpy(&w, from.data() + i, std::min(sizeof w, sizeof(T) - i));
            atomic_ref(static_cast<memory_word*>(to)[i / sizeof w])
                .store(w, std::memory_order_release);
        }
    }
    /// Loads the words of an element. Another thread may free the block during the loads, so
    /// AddressSanitizer must not check them.
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

/// Keeps one element of a `shared_slot_map` alive, even when another thread removes it. One thread
/// at a time may use a guard. The thread that destroys a guard need not be the one that created it.
///
///     if (auto const s = sessions.get(id))
///         s->touch();
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

    /// Returns whether the guard holds an element.
    explicit operator bool() const noexcept { return slot_ != nullptr; }
    /// Returns the element.
    T& operator*() const noexcept { return *static_cast<T*>(slot_->value); }
    T* operator->() const noexcept { return static_cast<T*>(slot_->value); } ///< the element

    /// Releases the element before the guard is destroyed. The guard then converts to false.
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
