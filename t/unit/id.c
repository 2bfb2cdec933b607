
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_id.h"

#include <sys/wait.h>


#define IDS  20000


static int
id_compare(const void *a, const void *b)
{
    return memcmp(a, b, NGX_MCP_UUID_LEN);
}


static int
id_canonical(u_char *p)
{
    int  i;

    for (i = 0; i < NGX_MCP_UUID_LEN; i++) {

        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (p[i] != '-') {
                return 0;
            }

        } else if (p[i] == '\0' || strchr("0123456789abcdef", p[i]) == NULL) {
            return 0;
        }
    }

    return 1;
}


static void
id_uuid(void)
{
    int         i, bad, status, fds[2];
    pid_t       pid;
    u_char     *ids, *p, text[NGX_MCP_UUID_LEN];
    ngx_time_t  now;

    now.sec = 1764000000;
    now.msec = 123;
    ngx_cached_time = &now;
    ngx_pid = getpid();

    ids = malloc(IDS * NGX_MCP_UUID_LEN);
    bad = 0;

    for (i = 0; i < IDS; i++) {
        p = ids + i * NGX_MCP_UUID_LEN;

        if (ngx_mcp_uuid(p) != NGX_OK
            || !id_canonical(p)
            || memcmp(p, "019ab697-e87b-7", 15) != 0
            || strchr("89ab", p[19]) == NULL)
        {
            bad++;
        }
    }

    if (!ok(bad == 0, "%d UUIDs of version 7", IDS)) {
        printf("# %.36s\n", ids);
    }

    qsort(ids, IDS, NGX_MCP_UUID_LEN, id_compare);

    for (i = 1; i < IDS; i++) {
        p = ids + i * NGX_MCP_UUID_LEN;
        bad += (memcmp(p - NGX_MCP_UUID_LEN, p, NGX_MCP_UUID_LEN) == 0);
    }

    ok(bad == 0, "all different");

    /* the buffer is not empty now; a child must not go on with it */

    if (pipe(fds) != 0) {
        exit(2);
    }

    fflush(stdout);
    pid = fork();

    if (pid == 0) {
        ngx_pid = getpid();

        for (i = 0; i < 10; i++) {
            (void) ngx_mcp_uuid(text);
            (void) ngx_write_fd(fds[1], text, sizeof(text));
        }

        _exit(0);
    }

    (void) waitpid(pid, &status, 0);

    for (i = 0; i < 10; i++) {
        (void) ngx_mcp_uuid(ids + i * NGX_MCP_UUID_LEN);
    }

    for (i = 0; i < 10; i++) {
        bad += (read(fds[0], text, sizeof(text)) != sizeof(text));
        bad += (memcmp(text, ids + i * NGX_MCP_UUID_LEN, sizeof(text)) == 0);
    }

    ok(bad == 0, "others in a child");

    close(fds[0]);
    close(fds[1]);
    free(ids);
}


static void
id_uuid_print(void)
{
    u_char  text[NGX_MCP_UUID_LEN];
    u_char  bin[] = "\x01\x23\x45\x67\x89\xab\xcd\xef"
                    "\x01\x23\x45\x67\x89\xab\xcd\xef";

    ok(ngx_mcp_uuid_print(text, bin) == text + NGX_MCP_UUID_LEN
       && memcmp(text, "01234567-89ab-cdef-0123-456789abcdef",
                 NGX_MCP_UUID_LEN) == 0, "as text");
}


static void
id_event(void)
{
    int                  bad;
    size_t               i;
    u_char               text[NGX_MCP_EVENT_ID_LEN], *p;
    ngx_str_t            str;
    ngx_mcp_event_id_t   id, back;

    static struct {
        ngx_mcp_event_id_t   id;
        const char          *text;
    } good[] = {
        { { 0, 0, 0, 0, 0 }, "0-0-0-0-0" },
        { { 1, 2, 3, 4, 5 }, "1-2-3-4-5" },
        { { 0xffffffff, 0xffffffff, 0xffffffffffffffffull,
            0xffffffffffffffffull, 0xffffffffffffffffull },
          "ffffffff-ffffffff-ffffffffffffffff-ffffffffffffffff"
          "-ffffffffffffffff" },
        { { 0x10, 0xabcdef, 0x123456789abcdef0ull, 0x100000000ull, 0x20 },
          "10-abcdef-123456789abcdef0-100000000-20" },
    };

    static const char  *refused[] = {
        "", "0", "0-0-0-0", "0-0-0-0-", "0-0-0-0-0-", "0-0-0-0-0-0",
        "-0-0-0-0-0", "--0-0-0", "0-0--0-0", "0-0-0-0-0 ", " 0-0-0-0-0",
        "0-0-0-0-00", "01-0-0-0-0", "A-0-0-0-0", "0-0-0-0-g",
        "100000000-0-0-0-0", "0-100000000-0-0-0", "0-0-10000000000000000-0-0",
        "0-0-0-10000000000000000-0", "0-0-0-0-10000000000000000", "0_0_0_0_0",
        "+1-0-0-0-0", "0x1-0-0-0-0", "1-2-3-4-5\n", "bogus",
        "1764000000_abc"
    };

    bad = 0;

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        id = good[i].id;
        str.data = text;
        str.len = ngx_mcp_event_id_print(text, &id) - text;

        bad += !tap_is(&str, good[i].text);
        bad += (ngx_mcp_event_id_parse(&str, &back) != NGX_OK);
        bad += (id.generation != back.generation || id.channel != back.channel
                || id.own != back.own || id.group != back.group
                || id.endpoint != back.endpoint);
    }

    ok(bad == 0, "event ids");

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        str.len = strlen(refused[i]);
        p = core_copy(refused[i], str.len);
        str.data = p;

        if (ngx_mcp_event_id_parse(&str, &back) != NGX_DECLINED) {
            printf("# %s\n", refused[i]);
            bad++;
        }

        free(p);
    }

    ok(bad == 0, "what is no event id of ours");
}


void
id_tests(void)
{
    id_uuid();
    id_uuid_print();
    id_event();
}
