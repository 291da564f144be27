/* Uses the C library, as a user's C program does. */
#include <mallard/c/mallard.h>

#include <stdio.h>

struct node {
    struct node* next;
    int number;
};

int main(void)
{
    const mallard_pool_options options = {.struct_bytes = sizeof options,
                                          .block_bytes = sizeof(struct node),
                                          .sync = MALLARD_SYNC_THREAD_CACHED};
    mallard_pool* const nodes = mallard_pool_create(&options);
    struct node* list = NULL;
    for (int i = 1; i <= 1000; ++i) {
        struct node* const n = mallard_pool_allocate(nodes);
        if (n == NULL) {
            char why[MALLARD_EXPLANATION_BYTES];
            fputs(mallard_explain(why, sizeof why), stderr);
            return 1;
        }
        n->next = list;
        n->number = i;
        list = n;
    }
    int sum = 0;
    while (list != NULL) {
        struct node* const n = list;
        list = n->next;
        sum += n->number;
        mallard_pool_free(nodes, n);
    }
    mallard_pool_destroy(nodes);
    printf("%d\n", sum);
    return sum == 500500 && mallard_version() == MALLARD_VERSION ? 0 : 1;
}
