// expected advice: fix in describe
//
// A table of metrics, each with its newest samples. Metrics that nobody requested are dropped with
// all that they own, except for the description, which leaks. So the memory only grows. Another
// malloc saves about as much time as the fix, and little of the memory.
#include "../known.h"

enum { slots = 4096, samples_max = 24 };

struct sample {
    uint32_t time, number;
};

struct metric {
    struct metric* next;
    char* name;
    char* description;
    struct sample* samples; /* a ring buffer */
    uint32_t count;
};

static struct metric* table[slots];

static char* copy_of(const char* text)
{
    return strcpy(known_block(malloc(strlen(text) + 1)), text);
}

/* Gives a metric a new description. */
static void describe(struct metric* at, const char* host, uint32_t number)
{
    char text[200];
    int const length =
        snprintf(text, sizeof text, "requests per second of the service %u on %s, %.*s", number,
                 host, (int)(number % 90),
                 "counted by the balancer in front of it and averaged over the last "
                 "minute, without errors");
    at->description = known_block(malloc((size_t)length + 1));
    memcpy(at->description, text, (size_t)length + 1);
}

static struct metric** place_of(const char* name)
{
    struct metric** place = &table[known_hash(0, name, strlen(name)) * 0x9e3779b97f4a7c15u >> 52];
    while (*place != NULL && strcmp((*place)->name, name) != 0)
        place = &(*place)->next;
    return place;
}

static void drop_metric(struct metric** place)
{
    struct metric* const dropped = *place;
    *place = dropped->next;
    free(dropped->samples);
    free(dropped->name);
    free(dropped);
}

/* Adds a sample to a metric. Creates the metric if it does not exist. */
static void add_sample(const char* name, const char* host, uint32_t time, uint32_t number)
{
    struct metric** const place = place_of(name);
    struct metric* at = *place;
    if (at == NULL) {
        *place = at = known_block(calloc(1, sizeof *at));
        at->name = copy_of(name);
        at->samples = known_block(calloc(samples_max, sizeof *at->samples));
        describe(at, host, number);
    }
    at->samples[at->count++ % samples_max] = (struct sample){time, number};
}

/* Returns the sum of the newest samples of a metric. */
static uint64_t sum_of(const struct metric* of)
{
    uint64_t sum = 0;
    uint32_t i;
    for (i = 0; i < samples_max && i < of->count; ++i)
        sum += of->samples[i].number;
    return sum;
}

/* Drops one in four of the metrics, and returns a checksum of the others. */
static uint64_t drop_old(uint64_t* random)
{
    uint64_t sum = 0;
    size_t i;
    for (i = 0; i < slots; ++i) {
        struct metric** place = &table[i];
        while (*place != NULL) {
            if (known_below(random, 4) == 0) {
                drop_metric(place);
                continue;
            }
            sum = sum * 31 + sum_of(*place) + strlen((*place)->description);
            place = &(*place)->next;
        }
    }
    return sum;
}

int main(int count, char** arguments)
{
    int const rounds = known_rounds(count, arguments, 120);
    uint64_t random = 47, sum = 0;
    char name[64], host[40];
    int i;
    uint32_t time;
    for (i = 0; i < rounds; ++i) {
        for (time = 0; time < 30000; ++time) {
            snprintf(host, sizeof host, "machine%u.net.example", known_below(&random, 3000));
            snprintf(name, sizeof name, "%s/requests", host);
            add_sample(name, host, (uint32_t)i * 30000 + time, known_below(&random, 100000));
        }
        sum = sum * 31 + drop_old(&random);
    }
    known_print(sum);
    return 0;
}
