
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Blocks; records, texts and lists, which are made of blocks; and the hash
 * table of records.
 *
 * The caller gives the text of a record in parts.  A large text is staged: its
 * blocks are allocated in batches, are filled without the lock, and belong to
 * the worker's slot until the record is committed.
 */

#ifndef _NGX_MCP_BLOCK_H_INCLUDED_
#define _NGX_MCP_BLOCK_H_INCLUDED_


#include "ngx_mcp_zone_sh.h"


typedef struct {
    ngx_uint_t              type;         /* type of the record */
    ngx_uint_t              nparts;
    ngx_str_t              *parts;        /* parts of the text; memory of the
                                             caller */
    size_t                  len;          /* length of the text */
    ngx_uint_t              blocks;       /* number of blocks of the record */
    uint32_t                head;         /* first staged block, or 0 */
    ngx_uint_t              room;         /* purpose of the blocks
                                             (schema->reserve_locked()); 0: the
                                             module itself */
    ngx_mcp_ref_t           payer;        /* account that pays for the blocks,
                                             or a record that the same account
                                             pays for; block 0: none */
} ngx_mcp_stage_t;

/*
 * Makes sure that n blocks are free for the payer.  Other records may be
 * removed for this, so no pointer into the zone is valid after the call.
 * NGX_OK, or the error of schema->reserve_locked().
 */
#define ngx_mcp_reserve_locked(zone, payer, room, n)                          \
    (zone)->schema->reserve_locked(zone, payer, room, n)

/*
 * ngx_mcp_text_blocks(): returns how many blocks a record of this type needs
 * for len bytes of text.  ngx_mcp_text_read(): copies len bytes of a record's
 * text, from byte "from" on, to dst.
 */
ngx_uint_t ngx_mcp_text_blocks(ngx_mcp_zone_t *zone, ngx_uint_t type,
    size_t len);
void ngx_mcp_text_read(ngx_mcp_zone_t *zone, void *rec, size_t from,
    u_char *dst, size_t len);

/* returns whether the len bytes of the text from byte "from" on are "text" */
ngx_uint_t ngx_mcp_text_equal(ngx_mcp_zone_t *zone, void *rec, size_t from,
    size_t len, ngx_str_t *text);

/* overwrites len bytes of the text from byte "from" on */
void ngx_mcp_text_store(ngx_mcp_zone_t *zone, void *rec, size_t from,
    u_char *src, size_t len);

/*
 * Copies len bytes of the text to pool; *out becomes the copy.  NGX_OK;
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_mcp_text_copy(ngx_mcp_zone_t *zone, void *rec, size_t from,
    size_t len, ngx_pool_t *pool, ngx_str_t *out);

/*
 * ngx_mcp_stage_init(): prepares a text of parts, without a payer.
 * ngx_mcp_stage(): stages the text if it is large.  NGX_OK; NGX_DECLINED: the
 * text is too large, or the payer has no room for it.
 * ngx_mcp_stage_drop_locked(): frees the staged blocks.
 * ngx_mcp_staged_free_locked(): frees the blocks that a worker had staged.
 */
void ngx_mcp_stage_init(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage,
    ngx_uint_t type, ngx_str_t *parts, ngx_uint_t nparts);
ngx_int_t ngx_mcp_stage(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage);
void ngx_mcp_stage_drop_locked(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage);
void ngx_mcp_staged_free_locked(ngx_mcp_zone_t *zone, ngx_mcp_worker_sh_t *w);

/*
 * Returns whether the text is small or staged, so that a record can be made of
 * it.
 */
ngx_uint_t ngx_mcp_stage_ready(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage);

/* the number of free blocks that ngx_mcp_make_locked() will use */
#define ngx_mcp_stage_needs(stage)  ((stage)->head ? 0 : (stage)->blocks)

/*
 * ngx_mcp_make_locked(): makes a record of a text, for which the caller has
 * reserved blocks.  The other members are zero, and the record has no type
 * until ngx_mcp_commit_locked().
 */
void *ngx_mcp_make_locked(ngx_mcp_zone_t *zone, ngx_mcp_stage_t *stage);
void ngx_mcp_commit_locked(ngx_mcp_zone_t *zone, void *rec, ngx_uint_t type);

/* replaces the text of a record; references to the record stay valid */
void ngx_mcp_text_replace_locked(ngx_mcp_zone_t *zone, void *rec,
    ngx_mcp_stage_t *stage);

/* frees a record; the caller has removed it from lists and counts before */
void ngx_mcp_drop_locked(ngx_mcp_zone_t *zone, void *rec);

/*
 * Lists.  n: block of the member; offset: offset of its links in the record.
 * insert: between the blocks prev and next, of which 0 stands for an end.
 */
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

/*
 * Returns the hash of one text or, unless b is NULL, of two texts by the zone's
 * key; never 0.
 */
uint64_t ngx_mcp_hash(ngx_mcp_zone_t *zone, ngx_str_t *a, ngx_str_t *b);
void ngx_mcp_hash_insert_locked(ngx_mcp_zone_t *zone, void *rec);
void ngx_mcp_hash_remove_locked(ngx_mcp_zone_t *zone, void *rec);

/*
 * Walk over the records of a type that have this hash.  They return the first
 * one and the next one; NULL: there are no more.
 */
void *ngx_mcp_hash_first_locked(ngx_mcp_zone_t *zone, ngx_uint_t type,
    uint32_t hash);
void *ngx_mcp_hash_next_locked(ngx_mcp_zone_t *zone, void *rec);

/*
 * Has the processor load the bucket of a hash into its cache or, in a second
 * call with "again", the first record in that bucket.
 */
void ngx_mcp_hash_prefetch(ngx_mcp_zone_t *zone, uint32_t hash,
    ngx_uint_t again);


#endif /* _NGX_MCP_BLOCK_H_INCLUDED_ */
