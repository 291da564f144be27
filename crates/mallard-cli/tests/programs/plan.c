/* A library that reports as libmallard-plan.so does, but serves no block. With the environment
   variable SLOW=1, it uses CPU time if it is not the control, so that the plan has a loss. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((destructor)) static void report(void)
{
    const char* file = getenv("MALLARD_PLAN_REPORT");
    const char* control = getenv("MALLARD_PLAN_CONTROL");
    int is_control = control != NULL && strcmp(control, "1") == 0;
    if (getenv("SLOW") != NULL && !is_control)
        for (volatile long i = 0; i < 200000000; ++i)
            ;
    if (file == NULL || getenv("MALLARD_PLAN") == NULL)
        return;
    FILE* to = fopen(file, "a");
    if (to == NULL)
        return;
    fprintf(to,
            "{\"process\":%d,\"program\":\"%s\",\"control\":%s,\"rules\":[{\"name\":\"parse\","
            "\"allocator\":\"arena\",\"blocks\":1500,\"bytes\":64000,\"peak_bytes\":2048,\"refused\":0,"
            "\"large\":3}],\"unknown_blocks\":20,\"other_blocks\":480,\"modules_missing\":[\"liba.so\"]}\n",
            (int)getpid(), program_invocation_short_name, is_control ? "true" : "false");
    fclose(to);
}
