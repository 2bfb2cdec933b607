
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#ifndef _TAP_H_INCLUDED_
#define _TAP_H_INCLUDED_


#include "core.h"


#define ok(cond, ...)                                                         \
    tap((cond) ? 1 : 0, __FILE__, __LINE__, __VA_ARGS__)


int tap(int good, const char *file, int line, const char *fmt, ...);

/* whether they are equal; says both if not */
int tap_is(ngx_str_t *got, const char *expected);


void json_tests(void);
void text_tests(void);
void json_index_tests(void);
void message_tests(void);
void sse_tests(void);
void lines_tests(void);
void invalidate_tests(void);
void id_tests(void);
void pages_tests(void);
void names_tests(void);
void merge_tests(void);
void template_tests(void);
void envelope_tests(void);
void listen_tests(void);
void stamp_tests(void);
void modern_tests(void);
void declared_tests(void);


#endif /* _TAP_H_INCLUDED_ */
