/* Stands in for an AArch64 program. The copy of this program at F/P starts F/aarch64/P by
 * qemu-user, with the same arguments and environment. So a test can start F/P like any other
 * program.
 *
 * LD_PRELOAD is passed to the AArch64 program alone, because qemu is a program of this machine and
 * could not load the library. For the same reason, this program is linked statically.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { before = 8 }; /* at most so many words before the arguments */

int main(int count, char** arguments)
{
    char program[4096], preload[4096];
    char** const words = calloc((size_t)count + before, sizeof(char*));
    const char* const libraries = getenv("LD_PRELOAD");
    const char* const slash = strrchr(arguments[0], '/');
    int const folder = slash ? (int)(slash + 1 - arguments[0]) : 0;
    if (words == NULL ||
        snprintf(program, sizeof program, "%.*saarch64/%s", folder, arguments[0],
                 arguments[0] + folder) >= (int)sizeof program ||
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s", libraries ? libraries : "") >=
            (int)sizeof preload)
        return 127;

    char** word = words;
    *word++ = "qemu-aarch64";
    *word++ = "-L";
    *word++ = "/usr/aarch64-linux-gnu";
    *word++ = "-0";
    *word++ = arguments[0];
    if (libraries) {
        *word++ = "-E";
        *word++ = preload;
        unsetenv("LD_PRELOAD");
    }
    *word++ = program;
    memcpy(word, arguments + 1, (size_t)count * sizeof(char*)); /* and the null at the end */
    execvp(words[0], words);
    fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
    return 127;
}
