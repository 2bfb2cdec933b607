
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_shared.h"


/* at a time; others wait */
#define NGX_HTTP_MCP_SHARED_RUNNING  8


typedef struct {
    ngx_queue_t                       queue;
    ngx_pool_t                       *pool;
    ngx_http_mcp_shared_t            *us;
    ngx_str_t                         method;
    ngx_str_t                         params;
    ngx_str_t                         uri;    /* to be subscribed to, or not */
    ngx_str_t                         id;
    ngx_http_mcp_shared_done_pt       done;
    void                             *data;
    ngx_http_mcp_upstream_request_t  *ureq;
    ngx_http_mcp_shared_answer_t      answer;
} ngx_http_mcp_shared_request_t;


static ngx_int_t ngx_http_mcp_shared_start(ngx_http_mcp_shared_request_t *req);
static void ngx_http_mcp_shared_message(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text);
static void ngx_http_mcp_shared_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome);
static void ngx_http_mcp_shared_detached(ngx_http_mcp_upstream_request_t *ureq);
static void ngx_http_mcp_shared_end(ngx_http_mcp_shared_request_t *req);
static void ngx_http_mcp_shared_free(ngx_http_mcp_shared_request_t *req);


ngx_int_t
ngx_http_mcp_shared_request(ngx_http_mcp_shared_t *us, ngx_str_t *method,
    ngx_str_t *params, ngx_http_mcp_shared_done_pt done, void *data)
{
    ngx_str_t    copy, none;
    ngx_pool_t  *pool;

    pool = ngx_create_pool(512, ngx_cycle->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    ngx_str_set(&none, "");

    copy.len = params->len;
    copy.data = ngx_pstrdup(pool, params);

    if (copy.data == NULL
        || ngx_http_mcp_shared_enqueue(us, pool, method, &copy, &none, done,
                                       data)
           != NGX_OK)
    {
        ngx_destroy_pool(pool);
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_shared_enqueue(ngx_http_mcp_shared_t *us, ngx_pool_t *pool,
    ngx_str_t *method, ngx_str_t *params, ngx_str_t *uri,
    ngx_http_mcp_shared_done_pt done, void *data)
{
    ngx_http_mcp_shared_request_t  *req;

    req = ngx_pcalloc(pool, sizeof(ngx_http_mcp_shared_request_t));
    if (req == NULL) {
        return NGX_ERROR;
    }

    req->pool = pool;
    req->us = us;
    req->params = *params;
    req->uri = *uri;
    req->done = done;
    req->data = data;

    req->method.len = method->len;
    req->method.data = ngx_pstrdup(pool, method);
    req->id.data = ngx_pnalloc(pool, sizeof("\"nginx-mcp-\"") + NGX_INT_T_LEN);

    if (req->method.data == NULL || req->id.data == NULL) {
        return NGX_ERROR;
    }

    req->id.len = ngx_sprintf(req->id.data, "\"nginx-mcp-%ui\"",
                              ++us->requests)
                  - req->id.data;

    ngx_queue_insert_tail(&us->waiting, &req->queue);
    us->nwaiting++;

    ngx_http_mcp_shared_post(us);

    return NGX_OK;
}


/*
 * The stream, or the first request alone, makes the session there, on which
 * others go side by side.  None goes before the stream was asked for.
 */

void
ngx_http_mcp_shared_run(ngx_http_mcp_shared_t *us)
{
    ngx_queue_t                    *q;
    ngx_http_mcp_shared_request_t  *req;

    while (!ngx_queue_empty(&us->waiting)
           && us->nrunning < NGX_HTTP_MCP_SHARED_RUNNING
           && !us->stream_pending && (us->made || us->nrunning == 0))
    {
        q = ngx_queue_head(&us->waiting);
        req = ngx_queue_data(q, ngx_http_mcp_shared_request_t, queue);

        ngx_queue_remove(q);
        us->nwaiting--;

        ngx_queue_insert_tail(&us->running, q);
        us->nrunning++;

        if (ngx_http_mcp_shared_start(req) != NGX_OK) {
            req->answer.outcome = NGX_HTTP_MCP_BAD;
            ngx_http_mcp_shared_end(req);
        }
    }
}


static ngx_int_t
ngx_http_mcp_shared_start(ngx_http_mcp_shared_request_t *req)
{
    ngx_http_mcp_shared_t            *us;
    ngx_http_mcp_upstream_request_t  *ureq;

    us = req->us;

    ureq = ngx_http_mcp_upstream_request_create(us->upstream,
                                                &us->reader.audience, NULL);
    if (ureq == NULL) {
        return NGX_ERROR;
    }

    req->ureq = ureq;

    ureq->owner = us->ref;
    ureq->session_only = (req->uri.len != 0);
    ureq->message = ngx_http_mcp_shared_message;
    ureq->done = ngx_http_mcp_shared_done;
    ureq->destroyed = ngx_http_mcp_shared_detached;
    ureq->data = req;

    /* the request may outlive what it was asked with */

    if (ngx_http_mcp_upstream_request_compose(ureq, &req->id, &req->method,
                                              &req->params)
        != NGX_OK
        || ngx_http_mcp_string_copy(ureq->r->pool, &ureq->scope.name,
                                    &req->uri)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_mcp_upstream_request_run(ureq);
}


static void
ngx_http_mcp_shared_message(ngx_http_mcp_upstream_request_t *ureq,
    ngx_str_t *text)
{
    ngx_str_t                       id, code;
    ngx_mcp_json_t                 *json;
    ngx_mcp_consume_t               consume;
    ngx_http_mcp_shared_answer_t   *answer;
    ngx_http_mcp_shared_request_t  *req;

    req = ureq->data;
    json = &ureq->x->scan;
    answer = &req->answer;

    if (json->members[NGX_MCP_PATH_METHOD].type == NGX_MCP_JSON_STRING) {
        ngx_memzero(&consume, sizeof(ngx_mcp_consume_t));

        consume.lease = req->us->reader.lease;
        consume.rc = NGX_AGAIN;

        ngx_http_mcp_shared_receive(req->us, ureq, text, &consume);
        return;
    }

    id = ngx_mcp_json_span(json, NGX_MCP_PATH_ID, text->data);

    if (ureq->answered || !ngx_mcp_json_same_id(&id, &req->id)) {
        return;
    }

    ureq->answered = 1;

    if (json->members[NGX_MCP_PATH_ERROR].type == NGX_MCP_JSON_OBJECT) {
        code = ngx_mcp_json_span(json, NGX_MCP_PATH_ERROR_CODE, text->data);

        if (code.len > 1 && code.data[0] == '-') {
            answer->code = - ngx_atoi(code.data + 1, code.len - 1);
        }

        if (answer->code >= 0) {
            answer->code = NGX_MCP_INTERNAL_ERROR;
        }

        return;
    }

    answer->result = ngx_mcp_json_span(json, NGX_MCP_PATH_RESULT, text->data);
    answer->result.data = ngx_pstrdup(ureq->r->pool, &answer->result);

    if (answer->result.data == NULL) {
        answer->result.len = 0;
    }
}


static void
ngx_http_mcp_shared_done(ngx_http_mcp_upstream_request_t *ureq,
    ngx_http_mcp_outcome_e outcome)
{
    ngx_http_mcp_shared_request_t  *req;

    req = ureq->data;

    req->answer.outcome = outcome;
    req->answer.status = ureq->x ? ureq->x->status : 0;
    req->answer.sessionless = ureq->sessionless;

    if (!req->us->begun) {
        req->us->missed = 1;
    }

    if (ureq->sessionless || req->answer.result.len || req->answer.code) {
        req->answer.serial = (ureq->us && !ureq->sessionless)
        ? ureq->us->serial : 0;

        ngx_http_mcp_shared_established(req->us, req->answer.serial);
    }

    ngx_http_mcp_shared_end(req);
}


/* with a worker that quits, which is told to let the session go first */

static void
ngx_http_mcp_shared_detached(ngx_http_mcp_upstream_request_t *ureq)
{
    ngx_http_mcp_shared_request_t  *req;

    req = ureq->data;
    req->ureq = NULL;
}


static void
ngx_http_mcp_shared_end(ngx_http_mcp_shared_request_t *req)
{
    ngx_http_mcp_shared_t  *us;

    us = req->us;

    ngx_queue_remove(&req->queue);
    us->nrunning--;

    req->done(us, &req->answer, req->data);

    ngx_http_mcp_shared_free(req);

    ngx_http_mcp_shared_post(us);
}


static void
ngx_http_mcp_shared_free(ngx_http_mcp_shared_request_t *req)
{
    ngx_http_mcp_upstream_request_t  *ureq;

    ureq = req->ureq;

    if (ureq) {
        ngx_http_mcp_upstream_request_close(ureq);
    }

    ngx_destroy_pool(req->pool);
}


void
ngx_http_mcp_shared_close_requests(ngx_http_mcp_shared_t *us)
{
    ngx_uint_t                      i;
    ngx_queue_t                    *q, *queues[2];
    ngx_http_mcp_shared_request_t  *req;

    queues[0] = &us->waiting;
    queues[1] = &us->running;

    for (i = 0; i < 2; i++) {

        while (!ngx_queue_empty(queues[i])) {
            q = ngx_queue_head(queues[i]);
            req = ngx_queue_data(q, ngx_http_mcp_shared_request_t, queue);

            ngx_queue_remove(q);
            ngx_http_mcp_shared_free(req);
        }
    }

    us->nwaiting = 0;
    us->nrunning = 0;
}
