
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_zone_sh.h"


typedef struct {
    u_char                *pos;
    u_char                *end;
    uint32_t               block;
} ngx_mcp_text_t;


static uint32_t ngx_mcp_block_pop_locked(ngx_mcp_zone_t *zone);
static uint32_t ngx_mcp_block_chain_locked(ngx_mcp_zone_t *zone, ngx_uint_t n,
    uint32_t *last);
static void ngx_mcp_staged_used_locked(ngx_mcp_zone_t *zone, uint32_t n);
static void ngx_mcp_block_free_locked(ngx_mcp_zone_t *zone, uint32_t n);
static void ngx_mcp_list_set(ngx_mcp_zone_t *zone, ngx_mcp_list_sh_t *list,
    uint32_t n, uint32_t next, uint32_t old, size_t offset);
static void ngx_mcp_list_set_prev(ngx_mcp_zone_t *zone,
    ngx_mcp_list_sh_t *list, uint32_t n, uint32_t prev, uint32_t old,
    size_t offset);
static ngx_uint_t ngx_mcp_text_next(ngx_mcp_zone_t *zone, ngx_mcp_text_t *t);
static void ngx_mcp_text_start(ngx_mcp_zone_t *zone, ngx_mcp_text_t *t,
    uint32_t n, ngx_uint_t type);
static ngx_inline u_char *ngx_mcp_text_here(ngx_mcp_zone_t *zone, void *rec,
    size_t from, size_t len);
static void ngx_mcp_text_seek(ngx_mcp_zone_t *zone, ngx_mcp_text_t *t,
    void *rec, size_t from);
static void ngx_mcp_text_write(ngx_mcp_zone_t *zone, uint32_t n,
    ngx_mcp_stage_t *stage);
static uint64_t ngx_mcp_siphash(uint64_t *key, uint64_t seed,
    ngx_str_t *text);


ngx_uint_t
ngx_mcp_text_blocks(ngx_mcp_zone_t *zone, ngx_uint_t type, size_t len)
{
    size_t  here;

    here = NGX_MCP_BLOCK_SIZE - zone->schema->heads[type];

    if (len <= here) {
        return 1;
    }

    return 1 + (len - here + NGX_MCP_BLOCK_DATA - 1) / NGX_MCP_BLOCK_DATA;
}


/*
 * Allocates a block.  If the block was free when the transaction began, only
 * its head is noted in the journal.  A block that was freed in the transaction
 * has to be noted as a whole, and is used only if there are no others.
 */

static uint32_t
ngx_mcp_block_pop_locked(ngx_mcp_zone_t *zone)
{
    uint32_t             n;
    ngx_mcp_zone_sh_t   *sh;
    ngx_mcp_block_sh_t  *block;

    sh = zone->sh;

    if (sh->free) {
        n = sh->free;
        block = ngx_mcp_block(zone, n);

        ngx_mcp_touch(zone, block);

        sh->free = block->chain;
        sh->nfree--;

    } else if (sh->watermark < sh->blocks) {
        n = sh->watermark;
        block = ngx_mcp_block(zone, n);

        ngx_mcp_touch(zone, &sh->watermark);

        ngx_memzero(block, sizeof(ngx_mcp_block_sh_t));
        block->gen = sh->generation;
        sh->watermark++;

    } else {
        n = sh->freed;
        block = ngx_mcp_block(zone, n);

        ngx_mcp_journal_note(zone, block, NGX_MCP_BLOCK_SIZE);

        sh->freed = block->chain;
        sh->nfree--;
    }

    block->chain = 0;

    return n;
}


static uint32_t
ngx_mcp_block_chain_locked(ngx_mcp_zone_t *zone, ngx_uint_t n, uint32_t *last)
{
    uint32_t             head, next;
    ngx_mcp_block_sh_t  *block;

    head = ngx_mcp_block_pop_locked(zone);
    *last = head;

    while (--n) {
        next = ngx_mcp_block_pop_locked(zone);
        block = ngx_mcp_block(zone, *last);
        block->chain = next;
        *last = next;
    }

    return head;
}


static ngx_uint_t
ngx_mcp_text_next(ngx_mcp_zone_t *zone, ngx_mcp_text_t *t)
{
    u_char              *p;
    uint32_t             n;
    ngx_mcp_block_sh_t  *block;

    block = ngx_mcp_block(zone, t->block);
    n = block->chain;

    /* the caller may not hold the lock: "n" may then be any number */

    if (n == 0 || n >= zone->sh->watermark) {
        return 0;
    }

    p = ngx_mcp_block(zone, n);

    t->block = n;
    t->pos = p + NGX_MCP_BLOCK_HEAD;
    t->end = p + NGX_MCP_BLOCK_SIZE;

    return 1;
}


static void
ngx_mcp_text_start(ngx_mcp_zone_t *zone, ngx_mcp_text_t *t, uint32_t n,
    ngx_uint_t type)
{
    u_char  *p;

    p = ngx_mcp_block(zone, n);

    t->block = n;
    t->pos = p + zone->schema->heads[type];
    t->end = p + NGX_MCP_BLOCK_SIZE;
}


/*
 * Returns the address of len bytes of a text, from byte "from" on, if all of
 * them are in the record's first block; else NULL.
 */

static ngx_inline u_char *
ngx_mcp_text_here(ngx_mcp_zone_t *zone, void *rec, size_t from, size_t len)
{
    ngx_uint_t  type;

    type = ((ngx_mcp_block_sh_t *) rec)->type;

    if (type >= zone->schema->types) {
        return NULL;
    }

    from += zone->schema->heads[type];

    return from + len <= NGX_MCP_BLOCK_SIZE ? (u_char *) rec + from : NULL;
}


static void
ngx_mcp_text_seek(ngx_mcp_zone_t *zone, ngx_mcp_text_t *t, void *rec,
    size_t from)
{
    ngx_uint_t            type;
    ngx_mcp_record_sh_t  *r;

    r = rec;
    type = r->block.type;

    ngx_mcp_text_start(zone, t, ngx_mcp_number(zone, rec),
                       type < zone->schema->types ? type : NGX_MCP_FREE);

    while (from >= (size_t) (t->end - t->pos)) {
        from -= t->end - t->pos;

        if (!ngx_mcp_text_next(zone, t)) {
            t->pos = t->end;
            return;
        }
    }

    t->pos += from;
}


void
ngx_mcp_text_read(ngx_mcp_zone_t *zone, void *rec, size_t from, u_char *dst,
    size_t len)
{
    size_t          n;
    u_char         *p;
    ngx_mcp_text_t  t;

    if (len == 0) {
        return;
    }

    p = ngx_mcp_text_here(zone, rec, from, len);

    if (p) {
        ngx_memcpy(dst, p, len);
        return;
    }

    ngx_mcp_text_seek(zone, &t, rec, from);

    for ( ;; ) {
        n = ngx_min(len, (size_t) (t.end - t.pos));
        dst = ngx_cpymem(dst, t.pos, n);
        len -= n;

        if (len == 0 || !ngx_mcp_text_next(zone, &t)) {
            return;
        }
    }
}


ngx_uint_t
ngx_mcp_text_equal(ngx_mcp_zone_t *zone, void *rec, size_t from, size_t len,
    ngx_str_t *text)
{
    size_t          n;
    u_char         *p;
    ngx_mcp_text_t  t;

    if (len != text->len) {
        return 0;
    }

    if (len == 0) {
        return 1;
    }

    p = ngx_mcp_text_here(zone, rec, from, len);

    if (p) {
        return ngx_memcmp(p, text->data, len) == 0;
    }

    p = text->data;
    ngx_mcp_text_seek(zone, &t, rec, from);

    for ( ;; ) {
        n = ngx_min(len, (size_t) (t.end - t.pos));

        if (ngx_memcmp(p, t.pos, n) != 0) {
            return 0;
        }

        p += n;
        len -= n;

        if (len == 0) {
            return 1;
        }

        if (!ngx_mcp_text_next(zone, &t)) {
            return 0;
        }
    }
}


void
ngx_mcp_text_store(ngx_mcp_zone_t *zone, void *rec, size_t from, u_char *src,
    size_t len)
{
    size_t          n;
    ngx_mcp_text_t  t;

    if (len == 0) {
        return;
    }

    ngx_mcp_text_seek(zone, &t, rec, from);

    for ( ;; ) {
        n = ngx_min(len, (size_t) (t.end - t.pos));
        ngx_mcp_journal_note(zone, t.pos, n);
        ngx_memcpy(t.pos, src, n);
        src += n;
        len -= n;

        if (len == 0 || !ngx_mcp_text_next(zone, &t)) {
            return;
        }
    }
}


static void
ngx_mcp_text_write(ngx_mcp_zone_t *zone, uint32_t n, ngx_mcp_stage_t *stage)
{
    size_t           len, size;
    u_char          *p;
    ngx_uint_t       i;
    ngx_mcp_text_t   t;

    ngx_mcp_text_start(zone, &t, n, stage->type);

    for (i = 0; i < stage->nparts; i++) {
        p = stage->parts[i].data;
        len = stage->parts[i].len;

        while (len) {
            if (t.pos == t.end && !ngx_mcp_text_next(zone, &t)) {
                return;
            }

            size = ngx_min(len, (size_t) (t.end - t.pos));
            t.pos = ngx_cpymem(t.pos, p, size);
            p += size;
            len -= size;
        }
    }
}


ngx_int_t
ngx_mcp_text_copy(ngx_mcp_zone_t *zone, void *rec, size_t from, size_t len,
    ngx_pool_t *pool, ngx_str_t *out)
{
    out->len = len;

    if (len == 0) {
        out->data = (u_char *) "";
        return NGX_OK;
    }

    out->data = ngx_pnalloc(pool, len);
    if (out->data == NULL) {
        out->len = 0;
        return NGX_ERROR;
    }

    ngx_mcp_text_read(zone, rec, from, out->data, len);

    return NGX_OK;
}


void
ngx_mcp_stage_init(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage,
    ngx_uint_t type, ngx_str_t *parts, ngx_uint_t nparts)
{
    ngx_uint_t  i;

    stage->type = type;
    stage->parts = parts;
    stage->nparts = nparts;
    stage->head = 0;
    stage->len = 0;
    stage->room = 0;
    ngx_memzero(&stage->payer, sizeof(ngx_mcp_ref_t));

    for (i = 0; i < nparts; i++) {
        stage->len += parts[i].len;
    }

    stage->blocks = ngx_mcp_text_blocks(zone, type, stage->len);
}


ngx_int_t
ngx_mcp_stage(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage)
{
    uint32_t              head, last, tail;
    ngx_uint_t            left, n;
    ngx_mcp_block_sh_t   *block;
    ngx_mcp_worker_sh_t  *w;

    if (ngx_mcp_stage_ready(zone, stage)) {
        return NGX_OK;
    }

    if (stage->blocks > NGX_MCP_BLOCKS_MAX
        || zone->worker == NGX_MCP_NO_WORKER)
    {
        return NGX_DECLINED;
    }

    w = ngx_mcp_slot(zone, zone->worker);
    tail = 0;

    for (left = stage->blocks; left; left -= n) {
        n = ngx_min(left, NGX_MCP_BLOCKS_BATCH);

        ngx_mcp_zone_lock(zone);

        if (ngx_mcp_reserve_locked(zone, stage->payer, stage->room, left)
            != NGX_OK)
        {
            ngx_mcp_stage_drop_locked(zone, stage);
            ngx_mcp_zone_unlock(zone);
            return NGX_DECLINED;
        }

        head = ngx_mcp_block_chain_locked(zone, n, &last);

        if (stage->head == 0) {
            ngx_mcp_touch(zone, &w->staged);

            stage->head = head;
            w->staged = head;

        } else {
            block = ngx_mcp_block(zone, tail);
            ngx_mcp_touch(zone, block);
            block->chain = head;
        }

        block = ngx_mcp_block(zone, stage->head);
        ngx_mcp_touch(zone, block);
        block->blocks = (uint16_t) (stage->blocks - left + n);
        block->last = last;

        tail = last;

        ngx_mcp_zone_unlock(zone);
    }

    ngx_mcp_text_write(zone, stage->head, stage);

    return NGX_OK;
}


/*
 * A process without a slot does not stage a text: it writes the text under the
 * lock, if the journal is large enough.
 */

ngx_uint_t
ngx_mcp_stage_ready(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage)
{
    return stage->head || stage->blocks <= NGX_MCP_BLOCKS_SMALL
           || (zone->worker == NGX_MCP_NO_WORKER
               && stage->blocks
                  <= zone->sh->journal_size / NGX_MCP_BLOCKS_NOTES);
}


void
ngx_mcp_stage_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage)
{
    if (stage->head == 0) {
        return;
    }

    ngx_mcp_staged_free_locked(zone, ngx_mcp_slot(zone, zone->worker));

    stage->head = 0;
}


void
ngx_mcp_staged_free_locked(ngx_mcp_zone_t *zone, ngx_mcp_worker_sh_t *w)
{
    uint32_t  n;

    n = w->staged;

    if (n) {
        ngx_mcp_touch(zone, &w->staged);
        w->staged = 0;

        ngx_mcp_block_free_locked(zone, n);
    }
}


/* takes the chain away from this worker's slot if it is staged there */

static void
ngx_mcp_staged_used_locked(ngx_mcp_zone_t *zone, uint32_t n)
{
    ngx_mcp_worker_sh_t  *w;

    if (zone->worker == NGX_MCP_NO_WORKER) {
        return;
    }

    w = ngx_mcp_slot(zone, zone->worker);

    if (w->staged == n) {
        ngx_mcp_touch(zone, &w->staged);
        w->staged = 0;
    }
}


/* frees a chain, in whose first block is the number of the last one */

static void
ngx_mcp_block_free_locked(ngx_mcp_zone_t *zone, uint32_t n)
{
    ngx_mcp_zone_sh_t   *sh;
    ngx_mcp_block_sh_t  *block, *last;

    sh = zone->sh;
    block = ngx_mcp_block(zone, n);
    last = ngx_mcp_block(zone, block->last);

    ngx_mcp_touch(zone, block);

    if (last != block) {
        ngx_mcp_touch(zone, last);
    }

    if (sh->freed == 0) {
        sh->freed_last = block->last;
    }

    last->chain = sh->freed;
    sh->freed = n;
    sh->nfree += block->blocks;
}


void *
ngx_mcp_make_locked(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage)
{
    uint32_t              n, last;
    ngx_mcp_record_sh_t  *rec;

    n = stage->head;

    if (n && ngx_mcp_slot(zone, zone->worker)->staged != n) {

        /*
         * The zone was emptied after the text was staged: the staged blocks
         * are lost, but there is room for others.
         */

        n = 0;
    }

    if (n == 0) {
        n = ngx_mcp_block_chain_locked(zone, stage->blocks, &last);
        rec = ngx_mcp_block(zone, n);
        rec->block.last = last;
        ngx_mcp_text_write(zone, n, stage);

    } else {

        /* the text behind the structure was filled outside of the lock */

        rec = ngx_mcp_block(zone, n);
        ngx_mcp_journal_note(zone, rec, zone->schema->heads[stage->type]);
    }

    ngx_memzero((u_char *) rec + NGX_MCP_BLOCK_HEAD,
                zone->schema->heads[stage->type] - NGX_MCP_BLOCK_HEAD);

    rec->block.blocks = (uint16_t) stage->blocks;
    rec->len = (uint32_t) stage->len;
    rec->worker = (uint16_t) zone->worker;
    rec->account = zone->schema->account_locked(zone, stage->payer);

    return rec;
}


void
ngx_mcp_commit_locked(ngx_mcp_zone_t *zone, void *rec, ngx_uint_t type)
{
    ngx_mcp_block_sh_t   *block;
    ngx_mcp_record_sh_t  *r;

    r = rec;
    block = rec;

    block->type = (u_char) type;

    ngx_mcp_staged_used_locked(zone, ngx_mcp_number(zone, rec));

    zone->sh->used[type] += block->blocks;
    zone->schema->charge_locked(zone, r->account, type, block->blocks);
}


void
ngx_mcp_drop_locked(ngx_mcp_zone_t *zone, void *rec)
{
    uint32_t              account;
    ngx_uint_t            type, blocks;
    ngx_mcp_block_sh_t   *block;
    ngx_mcp_record_sh_t  *r;

    block = rec;
    r = rec;

    type = block->type;
    blocks = block->blocks;
    account = r->account;

    ngx_mcp_block_free_locked(zone, ngx_mcp_number(zone, rec));

    block->type = NGX_MCP_FREE;
    block->gen++;

    zone->sh->used[type] -= (uint32_t) blocks;

    zone->schema->release_locked(zone, account, type, blocks);
}


/*
 * The new text is written to a new chain of blocks, which replaces the chain of
 * the old text.
 */

void
ngx_mcp_text_replace_locked(ngx_mcp_zone_t *zone, void *rec,
    ngx_mcp_stage_t *stage)
{
    size_t                head;
    uint32_t              n, m;
    ngx_mcp_block_sh_t    old;
    ngx_mcp_record_sh_t  *r, *new;

    r = rec;
    new = ngx_mcp_make_locked(zone, stage);

    n = ngx_mcp_number(zone, r);
    m = ngx_mcp_number(zone, new);
    head = zone->schema->heads[r->block.type];

    ngx_mcp_staged_used_locked(zone, m);

    ngx_mcp_journal_note(zone, r, NGX_MCP_BLOCK_SIZE);

    zone->sh->used[r->block.type] += stage->blocks - r->block.blocks;
    zone->schema->charge_locked(zone, r->account, r->block.type,
                                stage->blocks);
    zone->schema->release_locked(zone, r->account, r->block.type,
                                 r->block.blocks);

    old = r->block;

    r->block.blocks = new->block.blocks;
    r->block.chain = new->block.chain;
    r->block.last = (new->block.last == m) ? n : new->block.last;
    r->len = new->len;
    ngx_memcpy((u_char *) r + head, (u_char *) new + head,
               NGX_MCP_BLOCK_SIZE - head);

    new->block.blocks = old.blocks;
    new->block.chain = old.chain;
    new->block.last = (old.last == n) ? m : old.last;

    ngx_mcp_block_free_locked(zone, m);
}


void
ngx_mcp_list_append(ngx_mcp_zone_t *zone, ngx_mcp_list_sh_t *list, uint32_t n,
    size_t offset)
{
    ngx_mcp_list_insert(zone, list, n, list->tail, 0, offset);
}


void
ngx_mcp_list_prepend(ngx_mcp_zone_t *zone, ngx_mcp_list_sh_t *list, uint32_t n,
    size_t offset)
{
    ngx_mcp_list_insert(zone, list, n, 0, list->head, offset);
}


void
ngx_mcp_list_insert(ngx_mcp_zone_t *zone, ngx_mcp_list_sh_t *list, uint32_t n,
    uint32_t prev, uint32_t next, size_t offset)
{
    ngx_mcp_links_sh_t  *l;

    l = ngx_mcp_links(zone, n, offset);

    ngx_mcp_touch(zone, l);
    l->next = next;
    l->prev = prev;

    ngx_mcp_list_set(zone, list, prev, n, next, offset);
    ngx_mcp_list_set_prev(zone, list, next, n, prev, offset);
}


void
ngx_mcp_list_remove(ngx_mcp_zone_t *zone, ngx_mcp_list_sh_t *list, uint32_t n,
    size_t offset)
{
    ngx_mcp_links_sh_t  *l;

    l = ngx_mcp_links(zone, n, offset);

    ngx_mcp_list_set(zone, list, l->prev, l->next, n, offset);
    ngx_mcp_list_set_prev(zone, list, l->next, l->prev, n, offset);

    ngx_mcp_touch(zone, l);
    l->next = 0;
    l->prev = 0;
}


/*
 * Sets the link of member n to the next member, or, if n is 0, the head of the
 * list.  old: the present value of the link.
 */

static void
ngx_mcp_list_set(ngx_mcp_zone_t *zone, ngx_mcp_list_sh_t *list, uint32_t n,
    uint32_t next, uint32_t old, size_t offset)
{
    uint32_t  *p;

    p = n ? &ngx_mcp_links(zone, n, offset)->next : &list->head;

    ngx_mcp_journal_note_known(zone, p, old);
    *p = next;
}


static void
ngx_mcp_list_set_prev(ngx_mcp_zone_t *zone, ngx_mcp_list_sh_t *list,
    uint32_t n, uint32_t prev, uint32_t old, size_t offset)
{
    uint32_t  *p;

    p = n ? &ngx_mcp_links(zone, n, offset)->prev : &list->tail;

    ngx_mcp_journal_note_known(zone, p, old);
    *p = prev;
}


#define ngx_mcp_rotl(x, n)  (((x) << (n)) | ((x) >> (64 - (n))))

#define ngx_mcp_sip_round(v)                                                  \
    v[0] += v[1]; v[1] = ngx_mcp_rotl(v[1], 13); v[1] ^= v[0];                \
    v[0] = ngx_mcp_rotl(v[0], 32);                                            \
    v[2] += v[3]; v[3] = ngx_mcp_rotl(v[3], 16); v[3] ^= v[2];                \
    v[0] += v[3]; v[3] = ngx_mcp_rotl(v[3], 21); v[3] ^= v[0];                \
    v[2] += v[1]; v[1] = ngx_mcp_rotl(v[1], 17); v[1] ^= v[2];                \
    v[2] = ngx_mcp_rotl(v[2], 32)


/* SipHash-1-3, as clients choose the names but must not choose the buckets */

static uint64_t
ngx_mcp_siphash(uint64_t *key, uint64_t seed, ngx_str_t *text)
{
    size_t     i;
    u_char    *p;
    uint64_t   m, v[4];

    v[0] = key[0] ^ seed ^ 0x736f6d6570736575ULL;
    v[1] = key[1] ^ 0x646f72616e646f6dULL;
    v[2] = key[0] ^ seed ^ 0x6c7967656e657261ULL;
    v[3] = key[1] ^ 0x7465646279746573ULL;

    p = text->data;

    for (i = text->len; i >= 8; i -= 8, p += 8) {
        ngx_memcpy(&m, p, 8);
        v[3] ^= m;
        ngx_mcp_sip_round(v);
        v[0] ^= m;
    }

    m = (uint64_t) text->len << 56;

    while (i--) {
        m |= (uint64_t) p[i] << (8 * i);
    }

    v[3] ^= m;
    ngx_mcp_sip_round(v);
    v[0] ^= m;

    v[2] ^= 0xff;
    ngx_mcp_sip_round(v);
    ngx_mcp_sip_round(v);
    ngx_mcp_sip_round(v);

    return v[0] ^ v[1] ^ v[2] ^ v[3];
}


uint64_t
ngx_mcp_hash(ngx_mcp_zone_t *zone, ngx_str_t *a, ngx_str_t *b)
{
    uint64_t  hash;

    hash = ngx_mcp_siphash(zone->sh->key, 0, a);

    if (b) {
        hash = ngx_mcp_siphash(zone->sh->key, hash, b);
    }

    /* the hash 0 stands for no text */

    return hash ? hash : 1;
}


void
ngx_mcp_hash_insert_locked(ngx_mcp_zone_t *zone, void *rec)
{
    uint32_t             *bucket;
    ngx_mcp_record_sh_t  *r;

    r = rec;
    bucket = &zone->sh->buckets[r->hash & zone->sh->mask];

    ngx_mcp_touch(zone, bucket);
    ngx_mcp_touch(zone, &r->bucket);

    r->bucket = *bucket;
    *bucket = ngx_mcp_number(zone, rec);
}


void
ngx_mcp_hash_remove_locked(ngx_mcp_zone_t *zone, void *rec)
{
    uint32_t              n, *bucket;
    ngx_mcp_record_sh_t  *r, *other;

    r = rec;
    n = ngx_mcp_number(zone, rec);
    bucket = &zone->sh->buckets[r->hash & zone->sh->mask];

    while (*bucket && *bucket != n) {
        other = ngx_mcp_block(zone, *bucket);
        bucket = &other->bucket;
    }

    if (*bucket) {
        ngx_mcp_touch(zone, bucket);
        *bucket = r->bucket;
    }
}


static void *
ngx_mcp_hash_search(ngx_mcp_zone_t *zone, uint32_t n, ngx_uint_t type,
    uint32_t hash)
{
    ngx_mcp_record_sh_t  *r;

    for ( /* void */ ; n; n = r->bucket) {
        r = ngx_mcp_block(zone, n);

        if (r->hash == hash && r->block.type == type) {
            return r;
        }
    }

    return NULL;
}


void *
ngx_mcp_hash_first_locked(ngx_mcp_zone_t *zone, ngx_uint_t type,
    uint32_t hash)
{
    return ngx_mcp_hash_search(zone, zone->sh->buckets[hash & zone->sh->mask],
                               type, hash);
}


void
ngx_mcp_hash_prefetch(ngx_mcp_zone_t *zone, uint32_t hash, ngx_uint_t again)
{
    uint32_t  *bucket;

    bucket = &zone->sh->buckets[hash & zone->sh->mask];

    if (again) {
        ngx_mcp_prefetch(ngx_mcp_block(zone, *bucket), NGX_MCP_LINE);

    } else {
        ngx_mcp_prefetch(bucket, sizeof(uint32_t));
    }
}


void *
ngx_mcp_hash_next_locked(ngx_mcp_zone_t *zone, void *rec)
{
    ngx_mcp_record_sh_t  *r;

    r = rec;

    return ngx_mcp_hash_search(zone, r->bucket, r->block.type, r->hash);
}
