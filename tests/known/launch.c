/* Runs a program, and prints its status, its CPU time in ms and its peak memory in KiB. Discards
 * what the program prints.
 *
 *     launch MALLOC PROGRAM [ARGUMENT ...]
 *
 * MALLOC is the path of a library with a malloc, or an empty text. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double ms_of(struct timeval time)
{
    return (double)time.tv_sec * 1e3 + (double)time.tv_usec / 1e3;
}

int main(int count, char** arguments)
{
    int status;
    struct rusage used;
    pid_t child;
    if (count < 3)
        return 2;
    child = fork();
    if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        if (*arguments[1] != '\0')
            setenv("LD_PRELOAD", arguments[1], 1);
        execv(arguments[2], arguments + 2);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child)
        return 1;
    printf("%d %.3f %ld\n", status, ms_of(used.ru_utime) + ms_of(used.ru_stime), used.ru_maxrss);
    return 0;
}
