/* LevelDB's logs, read record by record. See data/leveldb_log.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/leveldb_log.h"

enum part { PART_NONE, PART_WHOLE, PART_FIRST, PART_MIDDLE, PART_LAST };

/* Whether nothing more was written: versions before 2013 set room aside, which is zero. */
static bool is_empty_from(const struct ls_leveldb_log *log, uint64_t place)
{
    while (place < log->size && log->bytes[place] == 0)
        place++;
    return place >= log->size;
}

/* The next part; *type PART_NONE at the end. What is cut off there was never finished, and LevelDB
 * does not read it either. */
static int next_part(struct ls_leveldb_log *log, int *type, uint64_t *at, uint64_t *size,
                     struct ls_error *error)
{
    *type = PART_NONE;
    uint64_t room = LS_LEVELDB_LOG_BLOCK - log->place % LS_LEVELDB_LOG_BLOCK;
    if (room < LS_LEVELDB_LOG_HEAD)
        log->place += room;
    if (log->place > log->size || log->size - log->place < LS_LEVELDB_LOG_HEAD) {
        log->cut = !is_empty_from(log, log->place);
        return 0;
    }
    room = LS_LEVELDB_LOG_BLOCK - log->place % LS_LEVELDB_LOG_BLOCK;
    const uint8_t *head = log->bytes + log->place;
    *at = log->place + LS_LEVELDB_LOG_HEAD;
    *size = ls_leveldb_fixed(head + 4, 2);
    if (head[6] == 0 && *size == 0 && is_empty_from(log, log->place))
        return 0;
    if (*size > room - LS_LEVELDB_LOG_HEAD || head[6] > PART_LAST || head[6] == PART_NONE)
        return ls_leveldb_damaged(log->path, log->place, "a part of a log is damaged", error);
    if (*size > log->size - *at) {
        log->cut = true;
        return 0;
    }
    /* The type comes before the bytes in this checksum. */
    if (ls_leveldb_fixed(head, 4) != ls_leveldb_checksum(head + 6, *size, head[6 + *size]))
        return ls_leveldb_damaged(log->path, log->place, "a part of a log is damaged", error);
    *type = head[6];
    log->place = *at + *size;
    return 0;
}

int ls_leveldb_log_next(struct ls_leveldb_log *log, bool *found, struct ls_error *error)
{
    bool begun = false;
    *found = false;
    for (;;) {
        int type;
        uint64_t at, size;
        LS_TRY(next_part(log, &type, &at, &size, error));
        if (type == PART_NONE) {
            log->cut = log->cut || begun;
            return 0;
        }
        bool begins = type == PART_WHOLE || type == PART_FIRST;
        if (begins == begun)
            return ls_leveldb_damaged(log->path, at, "a part of a log has no beginning or no end",
                                      error);
        if (begins) {
            ls_text_free(&log->record);
            log->start = at;
            begun = true;
        }
        ls_text_add_bytes(&log->record, log->bytes + at, size);
        if (log->record.failed)
            return ls_fail_memory(error, "a log");
        if (type == PART_WHOLE || type == PART_LAST) {
            *found = true;
            return 0;
        }
    }
}

struct ls_leveldb_bytes ls_leveldb_log_record(const struct ls_leveldb_log *log)
{
    const uint8_t *at = (const uint8_t *)log->record.data;
    return (struct ls_leveldb_bytes){at, at != NULL ? at + log->record.length : at};
}
