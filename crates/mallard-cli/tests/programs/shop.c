/* A small service for tests of queries. With `shop N`, customer threads make N orders, and
 * another thread frees a part of them. The catalogue grows by realloc, and stays in use. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { queue_size = 64, customers = 2 };

static void* volatile queue[queue_size];
static char* catalogue;
static int orders;

__attribute__((noinline)) static void* make_order(size_t size)
{
    char* order = malloc(size);
    memset(order, 1, size);
    return order;
}

__attribute__((noinline)) static void grow_catalogue(size_t size)
{
    catalogue = realloc(catalogue, size);
    memset(catalogue, 2, size);
}

__attribute__((noinline)) static void deliver(void)
{
    for (int i = 0; i < queue_size; ++i) {
        free(queue[i]);
        queue[i] = 0;
    }
}

static void* shopping(void* number)
{
    size_t const seed = (size_t)number;
    for (int i = 0; i < orders; ++i) {
        void* order = make_order(16 + (i * 37 + seed * 11) % 3000);
        int const slot = (i * (int)customers + (int)seed) % queue_size;
        if (i % 3 == 0 && queue[slot] == 0)
            queue[slot] = order;
        else if (i % 50 != 7)
            free(order);
    }
    return 0;
}

int main(int count, char** words)
{
    pthread_t threads[customers];
    orders = count > 1 ? atoi(words[1]) : 500;
    for (int round = 0; round < 3; ++round) {
        for (size_t i = 0; i < customers; ++i)
            pthread_create(&threads[i], 0, shopping, (void*)i);
        for (size_t i = 0; i < customers; ++i)
            pthread_join(threads[i], 0);
        usleep(15000); /* long enough for a sample of the memory */
        deliver();
        for (int i = 1; i <= 20; ++i)
            grow_catalogue((size_t)(round * 20 + i) * (size_t)orders);
    }
    return 0;
}
