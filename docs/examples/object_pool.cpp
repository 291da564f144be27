// Objects of one type, made and destroyed in a pool, and handles to them.
#include <mallard/object_pool.hpp>
#include <mallard/source.hpp>
#include <mallard/sync.hpp>

#include <array>
#include <cassert>
#include <string>
#include <thread>
#include <vector>

struct order {
    long id;
    double price;
};

struct mesh {
    std::string file;
};

struct node {
    int key;
    mallard::box<node> left, right; // a box may have an incomplete type: node has no size yet
};

struct count_orders {
    void acquired(order& fresh) { sum += fresh.price; }
    void released(order& old) noexcept { sum -= old.price; }
    double sum = 0;
};

namespace {

void owners()
{
    mallard::object_pool<order> orders;
    auto first = orders.make(7, 99.5);              // a box: destroys the order at its end
    order* const raw = orders.make(8, 99.0).leak(); // the caller has to destroy it
    assert(first->id == 7);
    orders.destroy(raw);

    first.reset();
    assert(orders.stats().blocks_live == 0);
}

void shared_owners()
{
    mallard::rc_pool<mesh> meshes;
    mallard::rc<mesh> tree = meshes.make_rc("tree.obj");
    mallard::rc<mesh> again = tree;    // one more owner
    mallard::weak<mesh> watch = again; // no owner: it only sees whether the mesh lives
    tree.reset();
    assert(watch.lock()->file == "tree.obj");
    again.reset();
    assert(watch.lock() == nullptr && watch.expired());
}

void owners_in_threads()
{
    mallard::arc_pool<mesh> meshes;
    mallard::arc<mesh> rock = meshes.make_arc("rock.obj");
    std::thread other([copy = rock] { assert(copy->file == "rock.obj"); });
    rock.reset(); // the last of the two destroys the mesh, in its thread
    other.join();
}

void trees()
{
    mallard::object_pool<node> nodes;
    auto root = nodes.make(2);
    root->left = nodes.make(1);
    root->right = nodes.make(3);
    root.reset(); // also destroys the other two nodes
    assert(nodes.stats().blocks_live == 0);
}

void many()
{
    mallard::object_pool<order> orders;
    std::array<order*, 100> batch;
    orders.make_batch(batch, 1, 50.0); // makes all orders, or throws and makes none
    batch[17]->price = 51.0;

    orders.for_each([&](order& one) { // visits in address order
        if (one.price == 50.0)
            orders.destroy(&one); // may destroy the visited object, but no other
    });
    assert(orders.stats().blocks_live == 1);

    orders.clear();   // destroys all objects, keeps the memory
    orders.release(); // destroys all objects, returns the memory
}

void hooks()
{
    using mallard::object_pool_options;
    mallard::object_pool<order, mallard::default_heap, object_pool_options{}, count_orders> orders;
    auto const first = orders.make(1, 20.0);
    {
        auto const second = orders.make(2, 22.0);
        assert(orders.hooks().sum == 42.0);
    }
    assert(orders.hooks().sum == 20.0);
}

void ends()
{
    mallard::object_pool<mesh, mallard::default_heap,
                         mallard::object_pool_options{.counts = mallard::counts::local}>
        meshes;
    mallard::weak watch = meshes.share(*meshes.make_rc("tree.obj"));
    assert(watch.expired());
    meshes.clear(); // weak handles may stay, but find nothing any more
    assert(watch.lock() == nullptr);
    watch.reset(); // no weak handle may outlive the pool

    mallard::object_pool<std::array<int, 4>> numbers;
    for (int i = 0; i < 1000; ++i)
        std::ignore = numbers.make().leak();
    numbers.clear(mallard::wink_out); // no destructor runs
    assert(numbers.stats().blocks_live == 0);
}

void without_a_heap()
{
    using mallard::growth, mallard::object_pool, mallard::object_pool_options;
    constexpr object_pool_options any_step{.grow = growth::none(1)};
    constexpr std::size_t bytes = object_pool<order, mallard::null, any_step>::bytes_for(100);
    object_pool<order, mallard::buffer<bytes>, object_pool_options{.grow = growth::none(bytes)}>
        orders;
    assert(orders.make(1, 10.0));
}

} // namespace

int main()
{
    owners();
    shared_owners();
    owners_in_threads();
    trees();
    many();
    hooks();
    ends();
    without_a_heap();
}
