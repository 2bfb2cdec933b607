
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * A process has at most as many connections as descriptors.  Further
 * connections are held by other processes, which say when they have opened
 * theirs, and then wait until the first process ends.
 */

#include "load.h"


static int  said[2] = { -1, -1 };            /* written by each ready one */
static int  alive[2];                        /* ends with the first process */


/* starts a process; returns 0 in the new process */

int
fork_part(void)
{
    int  pid;

    if (said[0] == -1 && (pipe(said) == -1 || pipe(alive) == -1)) {
        die("pipe");
    }

    fflush(NULL);

    pid = fork();

    if (pid == -1) {
        die("fork");
    }

    if (pid == 0) {
        close(alive[1]);
    }

    return pid;
}


/* the new process says that it is ready, and then only waits for the end */

void
fork_ready(void)
{
    char  c = 0;

    if (write(said[1], &c, 1) != 1) {
        die("write");
    }

    while (read(alive[0], &c, 1) > 0) { /* void */ }

    _exit(0);
}


/* waits until n processes are ready; one that fails has said why */

void
fork_wait(int n)
{
    int   status;
    char  c;

    fcntl(said[0], F_SETFL, O_NONBLOCK);

    while (n) {

        if (read(said[0], &c, 1) == 1) {
            n--;
            continue;
        }

        if (waitpid(-1, &status, WNOHANG) > 0) {
            exit(1);
        }

        usleep(10000);
    }
}


void
fork_end(void)
{
    close(alive[1]);

    while (waitpid(-1, NULL, 0) > 0) { /* void */ }

    close(alive[0]);
    close(said[0]);
    close(said[1]);
    said[0] = -1;
}
