/* What a function may take for granted and a reader, or a tool that sees one file at a time, cannot
 * see from it alone: what another file guarantees.
 *
 *     LS_ASSERT(status != 0 || trainer != NULL);
 *
 * is checked by debug builds and believed by clang's analyzer; release builds have no code for it.
 * Never for what callers, files or the system may do wrong: that is an error with a message.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_ASSERT_H
#define LS_BASE_ASSERT_H

#include <assert.h>

#ifdef __clang_analyzer__
#define LS_ASSERT(condition) ((condition) ? (void)0 : __builtin_unreachable())
#elif defined(NDEBUG)
#define LS_ASSERT(condition) ((void)sizeof((condition) ? 1 : 0))
#else
#define LS_ASSERT(condition) assert(condition)
#endif

#endif
