
/*
 * Blocks, and records, texts, lists and the index, which consist of them.
 *
 * A text is given as parts; one that is large is staged: its blocks are taken
 * in batches and filled outside of the lock, and belong to the worker's slot
 * until the record is committed.
 */

#ifndef _NGX_MCP_BLOCK_H_INCLUDED_
#define _NGX_MCP_BLOCK_H_INCLUDED_


#include "ngx_mcp_zone_sh.h"


typedef struct {
    ngx_uint_t              type;
    ngx_uint_t              nparts;
    ngx_str_t              *parts;
    size_t                  len;
    ngx_uint_t              blocks;
    uint32_t                head;         /* staged, or 0 */
    ngx_uint_t              room;         /* as schema->reserve_locked() has it;
                                             0: the module's own */
    ngx_mcp_ref_t           payer;        /* record that it is charged as, or
                                             account; block 0: to nobody */
} ngx_mcp_stage_t;

/*
 * Makes sure that n blocks are free for the payer, for which records may go:
 * no pointer into the zone is valid across it.
 */
#define ngx_mcp_reserve_locked(zone, payer, room, n)                          \
    (zone)->schema->reserve_locked(zone, payer, room, n)

ngx_uint_t ngx_mcp_text_blocks(ngx_mcp_zone_t *zone, ngx_uint_t type,
    size_t len);
void ngx_mcp_text_read(ngx_mcp_zone_t *zone, void *rec, size_t from,
    u_char *dst, size_t len);

/* whether the len bytes there are this text */
ngx_uint_t ngx_mcp_text_equal(ngx_mcp_zone_t *zone, void *rec, size_t from,
    size_t len, ngx_str_t *text);

void ngx_mcp_text_store(ngx_mcp_zone_t *zone, void *rec, size_t from,
    u_char *src, size_t len);

ngx_int_t ngx_mcp_text_copy(ngx_mcp_zone_t *zone, void *rec, size_t from,
    size_t len, ngx_pool_t *pool, ngx_str_t *out);

/*
 * init: sets up, for the module's own; stage: stages it if it is large, within
 * the room of the payer; NGX_DECLINED: there is none.
 */
void ngx_mcp_stage_init(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage,
    ngx_uint_t type, ngx_str_t *parts, ngx_uint_t nparts);
ngx_int_t ngx_mcp_stage(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage);
void ngx_mcp_stage_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage);
void ngx_mcp_staged_free_locked(ngx_mcp_zone_t *zone, ngx_mcp_worker_sh_t *w);

/* whether it is small, or staged, so that a record can be made of it */
ngx_uint_t ngx_mcp_stage_ready(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage);

/* the blocks that ngx_mcp_make_locked() will take */
#define ngx_mcp_stage_needs(stage)  ((stage)->head ? 0 : (stage)->blocks)

/*
 * Makes a record that is all zero but for its text; room was reserved.  It has
 * no type before the commit.
 */
void *ngx_mcp_make_locked(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage);
void ngx_mcp_commit_locked(ngx_mcp_zone_t *zone, void *rec, ngx_uint_t type);

/* gives a record another text; it stays the same record */
void ngx_mcp_text_replace_locked(ngx_mcp_zone_t *zone, void *rec,
    ngx_mcp_stage_t *stage);

/* the caller removes the record from lists and counts before */
void ngx_mcp_drop_locked(ngx_mcp_zone_t *zone, void *rec);

void ngx_mcp_list_append(ngx_mcp_zone_t *zone, ngx_mcp_list_sh_t *list,
    uint32_t n, size_t offset);
void ngx_mcp_list_prepend(ngx_mcp_zone_t *zone, ngx_mcp_list_sh_t *list,
    uint32_t n, size_t offset);
void ngx_mcp_list_insert(ngx_mcp_zone_t *zone, ngx_mcp_list_sh_t *list,
    uint32_t n, uint32_t prev, uint32_t next, size_t offset);
void ngx_mcp_list_remove(ngx_mcp_zone_t *zone, ngx_mcp_list_sh_t *list,
    uint32_t n, size_t offset);

#define NGX_MCP_LINKS  offsetof(ngx_mcp_record_sh_t, links)

#define ngx_mcp_links(zone, n, offset)                                        \
    ((ngx_mcp_links_sh_t *) ((u_char *) ngx_mcp_block(zone, n) + (offset)))

/* never 0; b may be NULL */
uint64_t ngx_mcp_hash(ngx_mcp_zone_t *zone, ngx_str_t *a, ngx_str_t *b);
void ngx_mcp_hash_insert_locked(ngx_mcp_zone_t *zone, void *rec);
void ngx_mcp_hash_remove_locked(ngx_mcp_zone_t *zone, void *rec);

/* the records of a type that have a hash one by one; NULL: no more */
void *ngx_mcp_hash_first_locked(ngx_mcp_zone_t *zone, ngx_uint_t type,
    uint32_t hash);
void *ngx_mcp_hash_next_locked(ngx_mcp_zone_t *zone, void *rec);

/* fetches the place of this hash; again: the first record there */
void ngx_mcp_hash_prefetch(ngx_mcp_zone_t *zone, uint32_t hash,
    ngx_uint_t again);


#endif /* _NGX_MCP_BLOCK_H_INCLUDED_ */
