/* The C example of README.md. */
#include <mallard/c/mallard.h>

#include <stdio.h>

int main(void)
{
    mallard_arena* request = mallard_arena_create(NULL); /* all defaults */
    char* line = mallard_arena_allocate(request, 80, 1);
    snprintf(line, 80, "freed with everything else");
    mallard_arena_reset(request); /* frees all blocks, and keeps the memory */
    mallard_arena_destroy(request);
    return 0;
}
