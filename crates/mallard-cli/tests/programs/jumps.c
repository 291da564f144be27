/* Calls `parse_document` 50 times. Every second call is left by longjmp, after 60 of its nodes. The
   argument says what happens to these nodes:

       caller      main frees them after the jump
       nobody      they are never freed
       self        the function frees them before it jumps
       recursive   main frees them after the jump, and `parse_part`, which the program calls instead,
                   calls itself for each node

   With a second argument, `main` does not allocate between the calls. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node* next;
};

static jmp_buf fault;
static struct node* nodes;
static void* volatile title;

__attribute__((noinline)) static void add_node(int i)
{
    struct node* const made = malloc(sizeof(struct node) + 8 * (i % 5));
    made->next = nodes;
    nodes = made;
}

__attribute__((noinline)) static void free_nodes(void)
{
    while (nodes != 0) {
        struct node* const next = nodes->next;
        free(nodes);
        nodes = next;
    }
}

__attribute__((noinline)) static void fail(void)
{
    longjmp(fault, 1);
}

__attribute__((noinline)) static void parse_document(int document, char const* how)
{
    for (int i = 0; i < 100 + document % 7; ++i) {
        if (document % 2 == 1 && i == 60) {
            if (strcmp(how, "self") == 0)
                free_nodes();
            fail();
        }
        add_node(i);
    }
    free_nodes();
}

__attribute__((noinline)) static void parse_part(int document, int i)
{
    if (document % 2 == 1 && i == 60)
        fail();
    add_node(i);
    if (i < 100 + document % 7)
        parse_part(document, i + 1);
    if (i == 0)
        free_nodes();
}

int main(int argc, char** argv)
{
    char const* const how = argc > 1 ? argv[1] : "";
    static int document; // a local variable may lose its value in a jump
    for (document = 0; document < 50; ++document) {
        // A call of malloc between two calls of a function makes them distinguishable in call
        // stacks.
        if (argc < 3) {
            title = malloc(30);
            free(title);
        }
        if (setjmp(fault) != 0) {
            if (strcmp(how, "nobody") == 0)
                nodes = 0;
            free_nodes();
        } else if (strcmp(how, "recursive") == 0) {
            parse_part(document, 0);
        } else {
            parse_document(document, how);
        }
    }
    return 0;
}
