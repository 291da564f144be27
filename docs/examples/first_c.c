/* The first program of docs/start/c.md: makes lists with the heap, or with an arena. */
#include <mallard/c/mallard.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node* next;
    long value;
};

/* Allocates a node in the arena, or in the heap if `arena` is NULL. */
static struct node* new_node(mallard_arena* arena)
{
    struct node* n =
        arena != NULL ? mallard_arena_allocate(arena, sizeof *n, 0) : malloc(sizeof *n);
    if (n == NULL)
        exit(1);
    return n;
}

/* Answers one request: the sum of a list of `length` nodes. */
static long sum_of_list(mallard_arena* arena, long length)
{
    struct node* list = NULL;
    long sum = 0;
    for (long i = 0; i < length; ++i) {
        struct node* const n = new_node(arena);
        n->next = list;
        n->value = i;
        list = n;
    }
    while (list != NULL) {
        struct node* const next = list->next;
        sum += list->value;
        if (arena == NULL)
            free(list); /* the nodes of an arena need no free */
        list = next;
    }
    return sum;
}

int main(int arguments, char** argument)
{
    int const heap = arguments > 1 && strcmp(argument[1], "heap") == 0;
    mallard_arena* const arena = heap ? NULL : mallard_arena_create(NULL);
    long sum = 0;
    for (int request = 0; request < 2000; ++request) {
        sum += sum_of_list(arena, 5000);
        mallard_arena_reset(arena); /* frees every node, and keeps the memory */
    }
    mallard_arena_destroy(arena);
    printf("%ld\n", sum);
    return sum == 24995000000 ? 0 : 1;
}
