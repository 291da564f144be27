// asan: use-after-poison
#include <mallard/object_pool.hpp>

struct node {
    int value = 0;
    mallard::box<node> next;
    ~node()
    {
        if (next)
            value = next->value; // the object at `next` may be destroyed already
    }
};

int main()
{
    mallard::object_pool<node> nodes;
    node* const first = nodes.make().leak();
    node* const second = nodes.make().leak();
    first->next = nodes.adopt(second);
    second->next = nodes.adopt(first);
}
