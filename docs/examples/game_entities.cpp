// Entities of a game. They are found by keys, which may be stale. Their components are in secondary
// maps. A loop over all entities may make and destroy entities.
#include <mallard/secondary_map.hpp>
#include <mallard/slot_map.hpp>

#include <cassert>
#include <cstddef>
#include <string>
#include <vector>

using entity_key = mallard::key<20, 12, struct entities>;

struct entity {
    std::string name;
    entity_key target; // the entity that this one follows; may have been erased
};
struct body {
    float x, speed;
};
struct health {
    int points;
};

class world {
public:
    entity_key spawn(std::string name, float x, float speed)
    {
        entity_key const key = entities_.insert({std::move(name), {}});
        bodies_.set(key, {x, speed});
        return key;
    }
    void follow(entity_key who, entity_key whom) { entities_.get(who)->target = whom; }
    void make_mortal(entity_key who, int points) { health_.set(who, {points}); }

    /// Moves every entity that has a body and a target towards the target.
    void step(float dt)
    {
        entities_.for_each(
            [&](entity_key, entity& e, body& b) {
                if (!entities_.contains(e.target))
                    e.target = {}; // the target is gone or was never set: the entity stands still
                else if (body const* const goal = bodies_.get(e.target))
                    b.x += (goal->x > b.x ? b.speed : -b.speed) * dt;
            },
            bodies_);
    }

    /// Loops over all entities, erases each one that has no health, and makes another in its place.
    void bury()
    {
        entities_.for_each(
            [&](entity_key key, entity& e, health& h) {
                if (h.points > 0)
                    return;
                spawn("what was " + e.name, bodies_.get(key)->x, 0);
                entities_.erase(key); // visits no longer find its body and health
            },
            health_);
    }

    void hit(entity_key whom, int points)
    {
        if (health* const h = health_.get(whom))
            h->points -= points;
    }

    entity* find(entity_key who) { return entities_.get(who); }
    float where(entity_key who) { return bodies_.get(who)->x; }
    std::size_t size() const { return entities_.size(); }

private:
    mallard::slot_map<entity, entity_key> entities_;
    mallard::secondary_map<entity_key, body> bodies_;          // nearly all entities have one
    mallard::sparse_secondary_map<entity_key, health> health_; // few entities have one
};

int main()
{
    world w;
    entity_key const duck = w.spawn("duck", 100, 0);
    std::vector<entity_key> foxes;
    for (int i = 0; i < 1000; ++i) {
        foxes.push_back(w.spawn("fox " + std::to_string(i), static_cast<float>(i % 50), 2));
        w.follow(foxes.back(), duck);
    }
    w.make_mortal(duck, 3);
    entity* const first_fox = w.find(foxes[0]);

    w.step(10);
    assert(w.where(foxes[0]) == 20); // the fox moved towards the duck

    w.hit(duck, 3);
    w.bury();
    assert(w.size() == 1001);        // 1,000 foxes, and what the duck left behind
    assert(w.find(duck) == nullptr); // the key stays stale, though its slot is in use again

    w.step(10);
    assert(w.where(foxes[0]) == 20);       // its target is gone: the fox stands still
    assert(w.find(foxes[0]) == first_fox); // no element ever moved
    assert(!w.find(foxes[0])->target);     // the fox has no target any more
}
