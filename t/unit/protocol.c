
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"


static int  tap_n;
static int  tap_failed;


int
tap(int good, const char *file, int line, const char *fmt, ...)
{
    va_list  args;

    printf("%sok %d - ", good ? "" : "not ", ++tap_n);

    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);

    printf("\n");

    if (!good) {
        tap_failed++;
        printf("# at %s line %d\n", file, line);
    }

    return good;
}


int
tap_is(ngx_str_t *got, const char *expected)
{
    if (got->data != NULL
        && got->len == strlen(expected)
        && memcmp(got->data, expected, got->len) == 0)
    {
        return 1;
    }

    printf("# got:      %.*s\n# expected: %s\n",
           (int) got->len, got->data ? (char *) got->data : "", expected);

    return 0;
}


int
main(void)
{
    json_tests();
    text_tests();
    json_index_tests();
    message_tests();
    sse_tests();
    lines_tests();
    invalidate_tests();
    id_tests();
    pages_tests();
    names_tests();
    merge_tests();
    template_tests();
    envelope_tests();
    listen_tests();
    stamp_tests();
    modern_tests();
    declared_tests();

    printf("1..%d\n", tap_n);

    return tap_failed ? 1 : 0;
}
