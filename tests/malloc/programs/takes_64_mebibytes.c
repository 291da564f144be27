/* Succeeds if it gets 64 MiB: under MALLARD_LIMIT=1M it does not. */
#include <stdlib.h>

int main(void)
{
    void* volatile block = malloc((size_t)64 << 20);
    return block == NULL;
}
