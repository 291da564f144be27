/* Succeeds if malloc of 64 MiB succeeds, which it does not under MALLARD_LIMIT=1M. */
#include <stdlib.h>

int main(void)
{
    void* volatile block = malloc((size_t)64 << 20);
    return block == NULL;
}
