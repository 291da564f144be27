// expected advice: leave
//
// Makes small images of large ones. Each image needs some buffers, one row at a time, and a list of
// colours, but blurring and comparing takes nearly all of the time.
#include "../known.h"

struct image {
    size_t width, height;
    unsigned char** rows;
};

struct colour {
    struct colour* next;
    uint32_t value, count;
};

static struct image* make_image(size_t width, size_t height)
{
    struct image* made = known_block(malloc(sizeof *made));
    size_t y;
    made->width = width;
    made->height = height;
    made->rows = known_block(malloc(height * sizeof *made->rows));
    for (y = 0; y < height; ++y)
        made->rows[y] = known_block(malloc(width));
    return made;
}

static void drop_image(struct image* dropped)
{
    size_t y;
    for (y = 0; y < dropped->height; ++y)
        free(dropped->rows[y]);
    free(dropped->rows);
    free(dropped);
}

static struct image* draw(uint64_t* random)
{
    struct image* drawn = make_image(96 + known_below(random, 96), 96 + known_below(random, 96));
    uint32_t const tone = known_below(random, 200);
    size_t x, y;
    for (y = 0; y < drawn->height; ++y)
        for (x = 0; x < drawn->width; ++x)
            drawn->rows[y][x] = (unsigned char)((x * y / 40 + tone) ^ (x >> 3));
    return drawn;
}

/* Returns an image in which each point is the weighted mean of 49 points. */
static struct image* blur(const struct image* from)
{
    static const uint32_t weights[7] = {1, 6, 15, 20, 15, 6, 1};
    struct image* made = make_image(from->width - 6, from->height - 6);
    size_t x, y, i, j;
    for (y = 0; y < made->height; ++y)
        for (x = 0; x < made->width; ++x) {
            uint32_t sum = 0;
            for (j = 0; j < 7; ++j)
                for (i = 0; i < 7; ++i)
                    sum += weights[j] * weights[i] * from->rows[y + j][x + i];
            made->rows[y][x] = (unsigned char)(sum >> 12);
        }
    return made;
}

/* Returns an image of a quarter of the width and the height. */
static struct image* shrink(const struct image* from)
{
    struct image* made = make_image(from->width / 4, from->height / 4);
    size_t x, y;
    for (y = 0; y < made->height; ++y)
        for (x = 0; x < made->width; ++x)
            made->rows[y][x] = from->rows[y * 4 + 1][x * 4 + 1];
    return made;
}

/* Returns the number of the most frequent colour. */
static uint32_t main_colour(const struct image* of)
{
    struct colour *all = NULL, *one, *best;
    size_t x, y;
    uint32_t value;
    for (y = 0; y < of->height; ++y)
        for (x = 0; x < of->width; ++x) {
            value = of->rows[y][x] / 8;
            for (one = all; one != NULL && one->value != value; one = one->next) {}
            if (one == NULL) {
                one = known_block(malloc(sizeof *one));
                *one = (struct colour){all, value, 0};
                all = one;
            }
            ++one->count;
        }
    for (one = best = all; one != NULL; one = one->next)
        if (one->count > best->count)
            best = one;
    value = best->value;
    while ((one = all) != NULL) {
        all = one->next;
        free(one);
    }
    return value;
}

int main(int count, char** arguments)
{
    int const rounds = known_rounds(count, arguments, 600);
    uint64_t random = 43, sum = 0;
    int i;
    size_t y;
    for (i = 0; i < rounds; ++i) {
        struct image* const drawn = draw(&random);
        struct image* const softer = blur(drawn);
        struct image* const blurred = blur(softer);
        struct image* const small = shrink(blurred);
        for (y = 0; y < small->height; ++y)
            sum = known_hash(sum, (const char*)small->rows[y], small->width);
        sum = sum * 31 + main_colour(small);
        drop_image(small);
        drop_image(blurred);
        drop_image(softer);
        drop_image(drawn);
    }
    known_print(sum);
    return 0;
}
