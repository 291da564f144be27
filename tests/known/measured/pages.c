// expected advice: convert AS4 or AS3 in render_page
//
// Renders tables as HTML. The text of each cell, row and page is built piece by piece in a string
// that grows by realloc, and all strings of a page are freed when the page is complete.
#include "../known.h"

struct string {
    char* text;
    size_t length, capacity;
};

static void append(struct string* to, const char* text, size_t length)
{
    if (to->length + length > to->capacity) {
        to->capacity = (to->length + length) * 3 / 2 + 8;
        to->text = known_block(realloc(to->text, to->capacity));
    }
    memcpy(to->text + to->length, text, length);
    to->length += length;
}

static void append_word(struct string* to, const char* text)
{
    append(to, text, strlen(text));
}

static void append_number(struct string* to, unsigned number)
{
    char digits[16];
    append(to, digits, (size_t)snprintf(digits, sizeof digits, "%u", number));
}

/* Appends a text, with the special characters of HTML replaced by their names. */
static void append_escaped(struct string* to, const char* text)
{
    size_t plain;
    while (*text != '\0') {
        plain = strcspn(text, "<>&");
        append(to, text, plain);
        text += plain;
        if (*text != '\0')
            append_word(to, *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : "&amp;");
        text += *text != '\0';
    }
}

static const char* const words[] = {
    "duck",    "<pond>", "salt & pepper", "winter", "a river in the north",
    "feather", "egg",    "a > b",         "nest"};

static struct string render_cell(uint64_t* random)
{
    struct string cell = {NULL, 0, 0};
    uint32_t count = 1 + known_below(random, 6);
    append_word(&cell, "<td class=\"c");
    append_number(&cell, known_below(random, 8));
    append_word(&cell, "\">");
    while (count-- > 0) {
        append_escaped(&cell, words[known_below(random, 9)]);
        append_word(&cell, " ");
    }
    append_word(&cell, "</td>");
    return cell;
}

static struct string render_row(uint64_t* random, struct string* cells, size_t columns)
{
    struct string row = {NULL, 0, 0};
    size_t i;
    for (i = 0; i < columns; ++i)
        cells[i] = render_cell(random);
    append_word(&row, "<tr>");
    for (i = 0; i < columns; ++i)
        append(&row, cells[i].text, cells[i].length);
    append_word(&row, "</tr>\n");
    return row;
}

/* Returns a hash of a page. The columns are as wide as their widest cell, so all cells are kept
 * until the page is complete. */
static uint64_t render_page(uint64_t* random, size_t rows, size_t columns)
{
    struct string page = {NULL, 0, 0};
    struct string* cells = known_block(calloc(rows * columns, sizeof *cells));
    struct string* lines = known_block(calloc(rows, sizeof *lines));
    uint64_t hash;
    size_t i, widest;
    for (i = 0; i < rows; ++i)
        lines[i] = render_row(random, cells + i * columns, columns);
    append_word(&page, "<table width=\"");
    for (i = 0, widest = 0; i < rows * columns; ++i)
        if (cells[i].length > widest)
            widest = cells[i].length;
    append_number(&page, (unsigned)(widest * columns));
    append_word(&page, "\">\n");
    for (i = 0; i < rows; ++i)
        append(&page, lines[i].text, lines[i].length);
    append_word(&page, "</table>\n");
    hash = known_hash(0, page.text, page.length / 16);
    for (i = 0; i < rows * columns; ++i)
        free(cells[i].text);
    for (i = 0; i < rows; ++i)
        free(lines[i].text);
    free(cells);
    free(lines);
    free(page.text);
    return hash;
}

int main(int count, char** arguments)
{
    int const rounds = known_rounds(count, arguments, 2200);
    uint64_t random = 41, sum = 0;
    int i;
    for (i = 0; i < rounds; ++i) {
        size_t const rows = 20 + known_below(&random, 180);
        sum = sum * 31 + render_page(&random, rows, 4 + known_below(&random, 12));
    }
    known_print(sum);
    return 0;
}
