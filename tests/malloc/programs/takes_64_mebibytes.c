/* Succeeds if malloc of 64 MiB succeeds. Under MALLARD_LIMIT=1M it must fail. */
#include <stdlib.h>

int main(void)
{
    void* volatile block = malloc((size_t)64 << 20);
    return block == NULL;
}
