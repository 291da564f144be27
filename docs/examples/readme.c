/* The C example of README.md. */
#include <mallard/c/mallard.h>

int main(void)
{
    mallard_arena* request = mallard_arena_create(NULL); /* all defaults */
    double* weights = mallard_arena_allocate(request, 100 * sizeof *weights, 0);
    weights[0] = 0.5;
    mallard_arena_reset(request); /* frees all blocks, and keeps the memory */
    mallard_arena_destroy(request);
}
