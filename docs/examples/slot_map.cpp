// Containers whose elements are found by keys that never dangle.
#include <mallard/secondary_map.hpp>
#include <mallard/shared_slot_map.hpp>
#include <mallard/slot_map.hpp>

#include <cassert>
#include <string>
#include <thread>

struct enemy {
    std::string name;
    int health;
};

struct speed {
    float x, y;
};

struct session {
    std::string user;
};

using enemy_key = mallard::key<20, 12, struct enemies>; // 4 bytes, and a type of its own

void one_thread()
{
    mallard::slot_map<enemy, enemy_key> enemies;
    enemy_key const duck = enemies.insert({"duck", 7});
    enemy_key const swan = enemies.emplace("swan", 9);
    if (enemy* const e = enemies.get(duck))
        e->health -= 1;

    enemies.erase(duck);
    enemies.insert({"goose", 5}); // uses the slot of the duck
    assert(enemies.get(duck) == nullptr);

    int health = 0;
    for (auto [key, e] : enemies) // in the order of slots
        health += e.health;
    erase_if(enemies, [](enemy_key, enemy& e) { return e.health < 6; });
    assert(health == 14 && enemies.size() == 1);

    std::optional<enemy> away = enemies.detach(swan); // the key stays reserved
    assert(!enemies.contains(swan));
    enemies.reattach(swan, std::move(*away));
    assert(enemies.get(swan)->name == "swan");

    mallard::secondary_map<enemy_key, speed> speeds;
    mallard::sparse_secondary_map<enemy_key, std::string> titles; // for components that few have
    speeds.set(swan, {1, 2});
    titles.set(swan, "Queen");
    enemies.for_each(
        [](enemy_key, enemy& e, speed& s, std::string& title) {
            s.x += 1;
            e.name = title + ' ' + e.name;
        },
        speeds, titles); // visits enemies that have both
    assert(enemies.get(swan)->name == "Queen swan" && speeds.get(swan)->x == 2);
}

void other_places()
{
    mallard::slot_map<enemy, mallard::key32, mallard::default_heap> in_chunks;
    static constinit mallard::slot_map<speed, mallard::key32, mallard::fixed<100>> in_itself;
    assert(in_chunks.insert({"duck", 7}) && in_itself.insert({1, 2}));
}

void several_threads()
{
    mallard::shared_slot_map<session> sessions;
    mallard::key64 const id = sessions.insert({"Ada"});
    auto const held = sessions.get(id); // a guard, which keeps the session
    std::thread other([&] { sessions.remove(id); });
    other.join();
    assert(held->user == "Ada");
    assert(!sessions.get(id)); // stale at once; the session ends with its last guard

    mallard::shared_slot_map<speed> speeds;
    mallard::key64 const fast = speeds.insert({3, 4});
    std::optional<speed> const copy = speeds.read(fast); // needs no locked instruction
    assert(copy && copy->y == 4);
    bool const found = speeds.with(fast, [](speed& s) { assert(s.x == 3); });
    assert(found);
}

void default_key()
{
    mallard::slot_map<std::string> players;
    mallard::key32 const key = players.insert("duck");
    players.erase(key);
    assert(players.get(key) == nullptr); // a stale key finds nothing
}

int main()
{
    one_thread();
    default_key();
    other_places();
    several_threads();
}
